//! The x32 programs of the oracle: what there is, how it is built, and what a transcript looks like.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, Once, OnceLock};
use std::time::SystemTime;

/// One program, linked one way.
#[derive(Debug, Clone)]
pub struct Program {
    /// The name of its source and of its transcript.
    pub name: String,
    /// `name`, or `name-dynamic`.
    pub file: String,
    /// How long it may take, under emulation too.
    pub seconds: u32,
    /// Whether every `make test` runs it on the kernel that has x32.
    pub core: bool,
}

/// `tests/x32`.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/x32")
}

/// Another C library than this system's: `WIDTHWISE_X32_SYSROOT` names the folder that its packages are unpacked into.
pub fn sysroot() -> Option<PathBuf> {
    let folder = std::env::var_os("WIDTHWISE_X32_SYSROOT").filter(|folder| !folder.is_empty())?;
    Some(std::fs::canonicalize(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())))
}

/// Where everything is built.
pub fn built() -> PathBuf {
    let folder = if sysroot().is_some() { "x32-sysroot" } else { "x32" };
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder)
}

/// Compiler and linker take x32's headers, start files, libraries and loader from that folder. The compiler's own
/// search would find this system's first.
pub fn sysroot_options(root: &Path, linked_dynamically: bool) -> Vec<String> {
    let root = root.display();
    let mut options = vec![
        format!("--sysroot={root}"),
        format!("-isystem{root}/usr/include/x86_64-linux-gnu"),
        format!("-B{root}/usr/libx32/"),
        format!("-L{root}/usr/libx32"),
    ];
    if linked_dynamically {
        options.push(format!("-Wl,--dynamic-linker={root}/usr/libx32/ld-linux-x32.so.2"));
        // Not DT_RUNPATH, by which what a library needs would be this system's.
        options.push(format!("-Wl,-rpath,{root}/usr/libx32,--disable-new-dtags"));
    }
    options
}

/// Every program, built: once in this process, and anew only if its source has changed. The names in
/// `WIDTHWISE_X32_ONLY` (separated by commas) narrow them down.
pub fn all() -> &'static [Program] {
    static ALL: OnceLock<Vec<Program>> = OnceLock::new();
    ALL.get_or_init(|| {
        let only = std::env::var("WIDTHWISE_X32_ONLY").ok();
        let wanted = |name: &str| only.as_ref().is_none_or(|only| only.split(',').any(|one| one == name));
        let mut names: Vec<String> = std::fs::read_dir(sources())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| (name.ends_with(".c") || name.ends_with(".cc")) && name != "stage.c")
            .filter(|name| wanted(name.rsplit_once('.').unwrap().0))
            .collect();
        names.sort();
        assert!(!names.is_empty(), "WIDTHWISE_X32_ONLY names no program of tests/x32: {only:?}");
        companions();
        let programs = Mutex::new(Vec::new());
        two_at_a_time(names.into_iter(), |name| {
            let built = build(&name);
            programs.lock().unwrap().extend(built);
        });
        let mut programs = programs.into_inner().unwrap();
        programs.sort_by(|a: &Program, b| a.file.cmp(&b.file));
        programs
    })
}

/// Does the work on every item, in two threads.
pub fn two_at_a_time<T: Send>(items: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    let queue = Mutex::new(items);
    let next = || queue.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(item) = next() {
                    work(item);
                }
            });
        }
    });
}

/// What every program finds beside it: the stage, which starts it, and the programs that it starts. Built once in this
/// process.
pub fn companions() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        std::fs::create_dir_all(built()).unwrap();
        compile(&["-O1", "-static"], &sources().join("stage.c"), &built().join("stage"));
        children();
    });
}

/// Programs that others start: the same source for x32 and for x86-64.
fn children() {
    let source = sources().join("children/child.c");
    compile(&["-mx32", "-O1", "-static", "-s"], &source, &built().join("child-x32"));
    compile(&["-mx32", "-O1", "-s"], &source, &built().join("child-x32-dynamic"));
    compile(&["-m64", "-O1", "-static", "-s"], &source, &built().join("child-x86-64"));
    for script in ["script", "script-of-scripts", "script-without-interpreter"] {
        let (from, to) = (sources().join("children").join(script), built().join(script));
        // Left alone where it is the same: another run of these tests may be executing it.
        if std::fs::read(&to).ok() != std::fs::read(&from).ok() {
            copy(&from, &to);
        }
    }
}

/// A copy that can be started at once: made by a process of its own, because what this one has open for writing is open
/// in whatever another test starts at that moment, and cannot be started itself meanwhile (ETXTBSY).
pub fn copy(from: &Path, to: &Path) {
    assert!(
        Command::new("cp").arg(from).arg(to).status().unwrap().success(),
        "{} was not copied",
        from.display()
    );
}

/// Builds one source in the ways its first comment asks for.
///
/// The line `built: static, dynamic` names the ways (static, static-pie; static alone if there is none), `flags:` more options, `seconds:` a longer
/// time limit, and `core` says that every `make test` runs it on the real kernel.
fn build(source: &str) -> Vec<Program> {
    let path = sources().join(source);
    let text = std::fs::read_to_string(&path).unwrap();
    let shown = |key: &str| of_first_comment(&text, key);
    let ways = shown("built:").unwrap_or("static");
    let flags: Vec<&str> = shown("flags:").unwrap_or("").split_whitespace().collect();
    let name = source.rsplit_once('.').unwrap().0;
    ways.split(',')
        // dlopen of a static program searches this system's folders, and wants the library it was linked with.
        .filter(|way| sysroot().is_none() || name != "loading" || way.trim() == "dynamic")
        .map(|way| {
            let (file, linked) = match way.trim() {
                "static" => (name.to_string(), "-static"),
                "dynamic" => (format!("{name}-dynamic"), "-pie"),
                "static-pie" => (format!("{name}-static-pie"), "-static-pie"),
                other => panic!("{source}: a program is built static, static-pie or dynamic, not {other:?}"),
            };
            let options = ["-mx32", "-O1", "-fPIE", "-s", "-pthread", linked];
            compile(&[&options[..], &flags].concat(), &path, &built().join(&file));
            Program { name: name.to_string(), file, seconds: seconds(&text), core: shown("core").is_some() }
        })
        .collect()
}

fn of_first_comment<'a>(source: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = source.lines().take(12);
    lines.find_map(|line| line.trim_start_matches([' ', '*', '/']).strip_prefix(key).map(str::trim))
}

/// How long the program of this source may take.
pub fn seconds(source: &str) -> u32 {
    of_first_comment(source, "seconds:").map_or(60, |seconds| seconds.parse().unwrap())
}

/// What a compiler warns of, and what these programs do on purpose: they hand the kernel what is wrong.
const ON_PURPOSE: [&str; 8] = [
    "-Wno-array-bounds",
    "-Wno-format-truncation",
    "-Wno-infinite-recursion",
    "-Wno-nonnull",
    "-Wno-stringop-overflow",
    "-Wno-stringop-overread",
    "-Wno-unused-result",
    "-Wno-use-after-free",
];

/// Compiles one file, unless it has been since it was changed.
pub fn compile(options: &[&str], source: &Path, program: &Path) {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|data| data.modified()).ok();
    let headers = headers(source.parent().unwrap()).chain(headers(&sources()));
    let newest: Option<SystemTime> =
        headers.map(|header| changed(&header)).max().flatten().max(changed(source));
    if changed(program) > newest {
        return;
    }
    let is_static = options.iter().any(|option| option.starts_with("-static"));
    let other_library = match sysroot() {
        Some(root) if options.contains(&"-mx32") => sysroot_options(&root, !is_static),
        _ => Vec::new(),
    };
    let compiler = if source.extension().is_some_and(|is| is == "cc") { "g++" } else { "gcc" };
    let standard = if compiler == "g++" { "-std=gnu++17" } else { "-std=gnu17" };
    let shown = Command::new(compiler)
        .args([
            standard,
            "-Wall",
            "-Wextra",
            "-Werror",
            "-D_GNU_SOURCE",
            "-idirafter/usr/include/x86_64-linux-gnu",
        ])
        .args(ON_PURPOSE)
        .args(other_library)
        .arg(format!("-I{}", sources().display()))
        .arg("-o")
        .arg(program)
        .arg(source)
        .args(options)
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}; run `sh packaging/install.sh test`"));
    assert!(shown.status.success(), "{}:\n{}", source.display(), String::from_utf8_lossy(&shown.stderr));
}

fn headers(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|is| is == "h"))
}

/// What each file printed and how it ended, from the stage's reports.
pub fn transcripts(reports: &[u8]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = reports;
    while rest.starts_with(b"@@ ") {
        let line = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        let head = String::from_utf8_lossy(&rest[..line]).into_owned();
        let [_, name, how, number, count] = head.split(' ').collect::<Vec<_>>()[..] else {
            panic!("no report of the stage: {head:?}");
        };
        let count: usize = count.parse().unwrap();
        let start = line + 1;
        let end = (start + count).min(rest.len());
        let mut text = String::from_utf8_lossy(&rest[start..end]).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let end_line = match how {
            "timeout" => "does not end".to_string(),
            how => format!("{how} {number}"),
        };
        found.insert(name.to_string(), format!("{text}-- {end_line}\n"));
        rest = &rest[end..];
    }
    found
}

/// Where the transcript of the program of that name is recorded.
pub fn recorded_at(name: &str) -> PathBuf {
    sources().join("transcripts").join(format!("{name}.txt"))
}

/// Where it is recorded what the runtime says instead, if it cannot say the same; with an option of the runtime
/// (`--seccomp`, `--ahead`) it may be able to do less still.
pub fn exception_at(name: &str) -> PathBuf {
    let folder = sources().join("exceptions");
    let options = std::env::var("X32RUN_OPTIONS").unwrap_or_default();
    let with_option = options
        .split_whitespace()
        .map(|option| folder.join(format!("{name}.{}.txt", option.trim_start_matches('-'))))
        .find(|path| path.exists());
    with_option.unwrap_or_else(|| folder.join(format!("{name}.txt")))
}
