//! The environment of a campaign's programs: the variables that must be the same in all of its sessions.

use std::collections::BTreeMap;
use std::ffi::OsString;

use widthwise_experiment::{bytes, Experiment};

/// Variables that change what a program or its libraries do; `*` stands for any end of a name. Others may differ between the
/// sessions of a campaign.
const COMPARED: [&str; 54] = [
    // The loader: ld.so(8).
    "LD_*",
    // The C library: environ(7), locale(7), mallopt(3), tzset(3), and its manual.
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "LANG",
    "LANGUAGE",
    "LC_ADDRESS",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_IDENTIFICATION",
    "LC_MEASUREMENT",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NAME",
    "LC_NUMERIC",
    "LC_PAPER",
    "LC_TELEPHONE",
    "LC_TIME",
    "LOCPATH",
    "MALLOC_*",
    "NLSPATH",
    "POSIXLY_CORRECT",
    "TZ",
    "TZDIR",
    // Allocators: jemalloc (MALLOC_CONF is above), mimalloc, tcmalloc.
    "JE_MALLOC_CONF",
    "MIMALLOC_*",
    "TCMALLOC_*",
    // Threads of numerical libraries.
    "BLIS_*",
    "GOMP_*",
    "KMP_*",
    "MKL_*",
    "OMP_*",
    "OPENBLAS_*",
    "TBB_*",
    // Sanitizers.
    "ASAN_OPTIONS",
    "LSAN_OPTIONS",
    "MSAN_OPTIONS",
    "TSAN_OPTIONS",
    "UBSAN_OPTIONS",
    // Languages: python(1), perlrun(1), Go's package runtime, node(1), java(1).
    "GODEBUG",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "NODE_OPTIONS",
    "PERL5LIB",
    "PERL5OPT",
    "PERL_HASH_SEED",
    "PERL_PERTURB_KEYS",
    "PYTHONHASHSEED",
    "PYTHONMALLOC",
    "PYTHONOPTIMIZE",
    "PYTHONPATH",
];

/// What begins the names of all rows in the fingerprint.
const ROW: &str = "variable";

/// The row that says which variables are compared, even if none of them is set.
const LIST: &str = "variables";

/// The rows of the fingerprint: what programs get of this process's environment. A variable of the request has the same value
/// whatever the shell's is.
pub fn fingerprint(experiment: &Experiment) -> BTreeMap<String, String> {
    let is_replaced = |name: &OsString| experiment.launch.environment.contains_key(&bytes::text(name));
    rows(std::env::vars_os().filter(|(name, _)| !is_replaced(name)))
}

/// A row for each variable that is compared: its name, and a digest of its value, which may be a secret.
fn rows(variables: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    let list = (LIST.to_owned(), digest(&COMPARED.join(" ")));
    variables
        .map(|(name, value)| (bytes::text(name), bytes::text(value)))
        .filter(|(name, _)| is_compared(name))
        .map(|(name, value)| (format!("{ROW} {name}"), digest(&value)))
        .chain([list])
        .collect()
}

fn is_compared(name: &str) -> bool {
    COMPARED.iter().any(|compared| match compared.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *compared,
    })
}

fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

/// Takes the environment out of the comparison with a campaign of a version that compared other variables, or none.
pub fn omit_if_list_differs(campaign: &BTreeMap<String, String>, now: &mut BTreeMap<String, String>) {
    if campaign.get(LIST) == now.get(LIST) {
        return;
    }
    let is_row = |what: &String| what.starts_with(ROW);
    now.retain(|what, _| !is_row(what));
    let kept = campaign.iter().filter(|(what, _)| is_row(what));
    now.extend(kept.map(|(what, digest)| (what.clone(), digest.clone())));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        super::rows(variables.iter().map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn what_programs_and_libraries_read_is_compared_and_nothing_else_is() {
        let here =
            [("LANG", "C"), ("PATH", "/bin"), ("SLURM_JOB_ID", "1"), ("TMPDIR", "/tmp/1"), ("_", "/bin/a")];
        let there = [("LANG", "C"), ("PATH", "/opt/bin:/bin"), ("SHLVL", "2"), ("LANGUAGES", "de")];
        assert_eq!(of(&here), of(&there));
        assert_ne!(of(&here), of(&[("LANG", "de")]));
        for name in ["LD_PRELOAD", "LC_NUMERIC", "MALLOC_ARENA_MAX", "OMP_NUM_THREADS", "PYTHONHASHSEED"] {
            assert_ne!(of(&here), of(&[("LANG", "C"), (name, "1")]), "{name}");
        }
    }

    #[test]
    fn the_documentation_lists_every_variable() {
        let documentation = include_str!("../../../docs/archive.md");
        for name in COMPARED {
            assert!(documentation.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn no_value_is_kept_in_clear() {
        let rows = of(&[("LD_PRELOAD", "secret")]);
        assert!(rows.len() == 2 && rows.values().all(|value| !value.contains("secret")));
    }

    /// The rows of a session with this environment, compared with those of a campaign.
    fn compared(campaign: &BTreeMap<String, String>, variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        let mut now = of(variables);
        omit_if_list_differs(campaign, &mut now);
        now
    }

    #[test]
    fn a_campaign_that_began_without_any_of_the_variables_is_compared() {
        let campaign = of(&[("HOME", "/root")]);
        assert_eq!(compared(&campaign, &[]), campaign);
        assert_ne!(compared(&campaign, &[("LD_PRELOAD", "x")]), campaign);
    }

    #[test]
    fn a_campaign_of_a_version_that_compared_other_variables_or_none_is_not_compared() {
        let row = |what: &str| BTreeMap::from([(what.to_owned(), "1".to_owned())]);
        for campaign in [BTreeMap::new(), row("variable PATH"), row("variables")] {
            assert_eq!(compared(&campaign, &[("LANG", "C")]), campaign);
        }
    }
}
