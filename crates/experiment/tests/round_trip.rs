//! A request that is written and read back is unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::asked::{facts, spec};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option::of;
use proptest::prelude::*;
use widthwise_experiment::metric::METRICS;
use widthwise_experiment::model::{Cpus, Directory, Estimator};
use widthwise_experiment::request::{
    Binary, Check, FlagSetRequest, MeasureRequest, OutputRequest, ProgramRequest, RunRequest, VariantRequest,
};
use widthwise_experiment::{placeholder, spec_text, Axis, Located, ProgramSource, Request, SourceLocation};

fn located<T>(value: T) -> Located<T> {
    Located::new(value, SourceLocation::Flag("--flag"))
}

fn location<T: std::fmt::Debug>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<Located<T>>> {
    of(value.prop_map(located))
}

fn located_list<T: std::fmt::Debug>(
    values: impl Strategy<Value = Vec<T>>,
) -> impl Strategy<Value = Vec<Located<T>>> {
    values.prop_map(|values| values.into_iter().map(located).collect())
}

/// Text with every character that needs quoting.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{1,5}",
        Just("\"".to_owned()),
        Just("'".to_owned()),
        Just("'''".to_owned()),
        Just("\"\"\"".to_owned()),
        Just("\\".to_owned()),
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\t".to_owned()),
        Just("\u{7f}\u{1}\u{85}".to_owned()),
        Just("é\u{2028}🦀".to_owned()),
        Just("{build}${X}{{a}}#=[]".to_owned()),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn command() -> impl Strategy<Value = String> {
    (text(), prop_oneof![Just(""), Just("{build}/x")])
        .prop_map(|(text, head)| head.to_owned() + &placeholder::literal(&text))
}

/// A name that may be given to something; some of them need quoting as keys.
fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z][a-z0-9-]{0,6}", "[a-z][a-z .\"'\\\\é/]{0,5}[a-z\"]"]
        .prop_filter("built in", |name| !["lto", "native", "pgo", "default"].contains(&name.as_str()))
}

fn path() -> impl Strategy<Value = PathBuf> {
    text()
        .prop_filter("a path has a name, and two have none", |text| {
            !text.is_empty()
                && !["here", "fresh"].contains(&text.as_str())
                && !text.starts_with("debian:")
                && !text.starts_with("micro:")
        })
        .prop_map(PathBuf::from)
}

fn paths() -> impl Strategy<Value = Vec<Located<PathBuf>>> {
    located_list(btree_set(path(), 0..3).prop_map(|paths| paths.into_iter().collect()))
}

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![any::<u64>().prop_map(Duration::from_nanos), (0..100_000_u64).prop_map(Duration::from_secs)]
}

fn fraction() -> impl Strategy<Value = f64> {
    prop_oneof![(0..=100_u32).prop_map(|percent| f64::from(percent) / 100.0), 0.0..1e300]
}

fn axis_value(axis: Axis) -> BoxedStrategy<String> {
    let few =
        |values: &'static [&'static str]| proptest::sample::select(values).prop_map(str::to_owned).boxed();
    match axis {
        Axis::Abi => few(&["x86-64", "x32", "i386"]),
        Axis::Compiler => few(&["gcc-12", "clang-14", "gcc-13"]),
        Axis::Flags => few(&["-O2", "-O3 -DX=\"a b\"", "lto", "own"]),
        Axis::Allocator => few(&["glibc", "jemalloc", "mimalloc", "tcmalloc"]),
        Axis::Thp => few(&["system", "always", "madvise", "never"]),
        Axis::Env => few(&["default", "tuned"]),
        Axis::Kernel => few(&["host", "debian:amd64", "debian:686-pae", "./boot/vmlinuz"]),
    }
}

fn axes() -> impl Strategy<Value = BTreeMap<Axis, Vec<Located<String>>>> {
    let column = |axis| btree_set(axis_value(axis), 0..3).prop_map(move |values| (axis, values));
    let columns = Axis::ALL.map(column);
    (columns, any::<bool>()).prop_map(|(columns, every)| {
        columns
            .into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(axis, values)| match axis {
                Axis::Compiler if every => (axis, vec![located("all".to_owned())]),
                _ => (axis, values.into_iter().map(located).collect()),
            })
            .collect()
    })
}

fn point() -> impl Strategy<Value = BTreeMap<Axis, Located<String>>> {
    let coordinate =
        |axis| of(axis_value(axis)).prop_map(move |value| value.map(|value| (axis, located(value))));
    Axis::ALL.map(coordinate).prop_map(|coordinates| coordinates.into_iter().flatten().collect())
}

fn program() -> impl Strategy<Value = ProgramRequest> {
    let debian = ("[a-z][a-z0-9.+-]{1,6}", of("[0-9][A-Za-z0-9.+~:-]{0,6}"))
        .prop_map(|(package, version)| ProgramSource::Debian { package, version });
    let source = prop_oneof![path().prop_map(ProgramSource::Path), debian];
    let binaries = btree_map(name(), path(), 0..3).prop_map(|files| {
        files.into_iter().map(|(name, file)| Binary { name: located(name), file: located(file) }).collect()
    });
    (
        location(text()),
        location(source),
        location(command()),
        location(command()),
        location(vec(text(), 0..3)),
        binaries,
    )
        .prop_map(|(name, source, build, run, arguments, binaries)| ProgramRequest {
            name,
            source,
            build,
            run,
            arguments,
            binaries,
        })
}

fn flag_set() -> impl Strategy<Value = FlagSetRequest> {
    (location(text()), location(text()), location(text()), location(any::<bool>()), location(command()))
        .prop_map(|(cflags, cxxflags, ldflags, profile_guided, train)| FlagSetRequest {
            cflags,
            cxxflags,
            ldflags,
            profile_guided,
            train,
        })
}

fn variables() -> impl Strategy<Value = BTreeMap<String, Located<String>>> {
    btree_map(prop_oneof!["[A-Z_]{1,6}", "[a-z.é]{1,4}"], text().prop_map(located), 0..3)
}

fn run() -> impl Strategy<Value = RunRequest> {
    let directory =
        prop_oneof![Just(Directory::Here), Just(Directory::Fresh), path().prop_map(Directory::Path)];
    let list =
        btree_set(0..8192_u32, 1..4).prop_map(|cpus: BTreeSet<u32>| Cpus::List(cpus.into_iter().collect()));
    let cpus = prop_oneof![Just(Cpus::Auto), Just(Cpus::Any), list];
    let places = (location(path()), location(directory), paths(), variables());
    let around = (location(command()), location(command()), location(duration()), location(duration()));
    let switches = (location(any::<bool>()), location(any::<bool>()), location(any::<bool>()));
    (places, around, location(0..256_i32), location(cpus), switches).prop_map(
        |(
            (stdin, directory, inputs, environment),
            (setup, teardown, timeout, boot_timeout),
            exit_status,
            cpus,
            switches,
        )| {
            RunRequest {
                stdin,
                directory,
                inputs,
                environment,
                setup,
                teardown,
                timeout,
                boot_timeout,
                exit_status,
                cpus,
                no_aslr: switches.0,
                concurrent: switches.1,
                exit_stop: switches.2,
            }
        },
    )
}

fn measure() -> impl Strategy<Value = MeasureRequest> {
    let metrics = btree_set(0..METRICS.len() + 2, 0..4);
    // A name with a point is no metric of ours.
    let reports = btree_set(
        r"([a-z]{1,3}|micro)\.[a-z_]{1,3} (nanoseconds|bytes|count( instructions)?( machine-instructions)?) ?[a-z]{0,5}",
        0..3,
    );
    let metrics = (metrics, reports);
    let stopping = (location(any::<u32>()), location(fraction()), location(duration()));
    let judging =
        (location(fraction()), location(fraction()), location(proptest::sample::select(&Estimator::ALL[..])));
    (metrics, stopping, location(any::<u32>()), judging, location(any::<u64>()), location(text())).prop_map(
        |(
            (metrics, reports),
            (rounds, precision, max_time),
            warmup,
            (confidence, equal_within, estimator),
            seed,
            baseline,
        )| {
            let mut measure = MeasureRequest {
                rounds,
                precision,
                max_time,
                warmup,
                confidence,
                equal_within,
                estimator,
                seed,
                baseline,
                ..MeasureRequest::default()
            };
            for number in metrics {
                let word = match number.checked_sub(2) {
                    Some(metric) => METRICS[metric].name,
                    None => ["all", "default"][number],
                };
                // "all" excludes other values, which are left out.
                let _ = measure.add_metric(word, SourceLocation::Flag("--metric"));
            }
            for report in reports {
                let (name, unit) = report.split_once(' ').unwrap();
                // The same name twice is refused, and left out.
                let _ = measure.add_report(name, unit, SourceLocation::Flag("--reports"));
            }
            measure
        },
    )
}

fn output() -> impl Strategy<Value = OutputRequest> {
    (location(proptest::sample::select(&Check::ALL[..])), paths(), location(text()), location(any::<bool>()))
        .prop_map(|(check, files, filter, allow_different)| OutputRequest {
            check,
            files,
            filter,
            allow_different,
        })
}

prop_compose! {
    fn request()(
        program in program(),
        axes in axes(),
        flag_sets in btree_map(name(), flag_set().prop_map(located), 0..3),
        env_sets in btree_map(name(), variables().prop_map(located), 0..3),
        excludes in located_list(vec(point().prop_filter("names an axis", |point| !point.is_empty()), 0..3)),
        variants in located_list(vec((location(text()), point()), 0..3).prop_map(|variants| {
            variants.into_iter().map(|(name, point)| VariantRequest { name, point }).collect()
        })),
        run in run(),
        measure in measure(),
        output in output(),
    ) -> Request {
        Request { program, axes, flag_sets, env_sets, excludes, variants, run, measure, output }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn a_request_that_is_written_and_read_is_unchanged(request in request()) {
        let text = spec_text(&request);
        let reread = widthwise_experiment::spec::parse(&text, "kept.toml");
        prop_assert_eq!(reread.as_ref(), Ok(&request), "{}", text);
    }

    #[test]
    fn any_request_is_resolved_or_refused(request in request()) {
        if let Ok(experiment) = request.resolve(&facts()) {
            prop_assert!(experiment.variants.iter().any(|variant| variant.name == experiment.baseline));
            prop_assert!(!experiment.metrics.is_empty());
            prop_assert!(experiment.stopping != Default::default(), "a campaign that never ends");
        }
    }
}

#[test]
fn a_written_request_is_readable() {
    let text = r#"[program]
name = "lua"
source = "debian:lua5.4"
build = '''
make -C src posix
make install
'''
run = "{build}/lua \"a b\""
arguments = ["1"]

[axes]
abi = ["x86-64", "x32"]
flags = ["-O2", "tuned build"]

[flags."tuned build"]
cflags = "-O3"
profile_guided = true

[env.tuned]
MALLOC_ARENA_MAX = "1"

[[exclude]]
abi = "x32"
compiler = "clang-14"

[run]
directory = "fresh"
inputs = ["bench.lua"]
environment = { K = "v" }
timeout = "1m30s"
cpus = "0,2,3"

[measure]
metrics = ["default", "instructions"]
precision = "0.5%"
warmup = 2

[measure.reports]
latency = "nanoseconds"
"micro.getpid" = "nanoseconds instructions time for getpid"

[output]
check = "off"
"#;
    assert_eq!(spec_text(&spec(text)), text);
}
