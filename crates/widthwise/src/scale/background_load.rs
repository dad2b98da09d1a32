//! The command of `--load`, which runs beside the members.

use widthwise_experiment::bytes;
use widthwise_measure::run::launch_spec::LaunchSpec;

/// A shell command as load: started anew whenever it ends, until it fails.
pub fn load(text: &str, like: &LaunchSpec) -> LaunchSpec {
    let looped = format!("while :; do {{ {text}\n}} >/dev/null || exit; done");
    LaunchSpec {
        file: "/bin/sh".into(),
        runtime: None,
        arguments: vec!["sh".into(), "-c".into(), bytes::os(&looped)],
        environment: std::env::vars_os().collect(),
        directory: like.directory.clone(),
        fresh: false,
        inputs: Vec::new(),
        stdin: "/dev/null".into(),
        setup: None,
        teardown: None,
        thp: widthwise_experiment::model::Thp::System,
        no_aslr: false,
        exit_status: 0,
    }
}
