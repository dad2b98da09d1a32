//! What a variant is built with: the values of CC, CXX, CFLAGS and so on. Pure.

use std::collections::BTreeMap;
use std::path::Path;

use widthwise_experiment::model::Variant;
use widthwise_machine::abi::AbiRow;
use widthwise_machine::compiler::{Compiler, Family};

use crate::build::layout;

/// The stage of a profile-guided build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage<'a> {
    /// An ordinary build of one stage.
    Plain,
    /// The first stage: a program that writes profiles into the folder.
    Instrumented(&'a Path),
    /// The second stage: uses the folder's profiles (gcc) or merged file (clang).
    Guided(&'a Path),
}

/// The variables of a build's environment, with the linker script of a layout, if there is one. The ABI's option is part of CC and CXX, not of CFLAGS: then it is
/// on every compiler and linker command, however the build system uses the flags.
pub fn variables(
    variant: &Variant,
    abi: &AbiRow,
    compiler: &Compiler,
    layout: Option<&Path>,
    stage: Stage,
) -> BTreeMap<&'static str, String> {
    let options = if abi.multilib == "." { Vec::new() } else { abi.options() };
    let with_options = |program: &Path| {
        let mut words = vec![program.display().to_string()];
        words.extend(options.iter().cloned());
        words.join(" ")
    };
    let profile = profile_options(compiler.family, stage);
    let (compiled, linked) = match layout {
        Some(script) => (layout::COMPILER_OPTIONS, layout::linker_option(script)),
        None => ("", String::new()),
    };
    let joined = |flags: &str, of_layout: &str| {
        let words = [flags, &profile, of_layout].map(str::trim);
        words.into_iter().filter(|words| !words.is_empty()).collect::<Vec<&str>>().join(" ")
    };
    // A build that needs a missing C++ compiler reports that itself.
    let cxx = compiler.cxx.clone().unwrap_or_else(|| compiler.family.cxx().into());
    BTreeMap::from([
        ("CC", with_options(&compiler.cc)),
        ("CXX", with_options(&cxx)),
        ("CFLAGS", joined(&variant.flags.cflags, compiled)),
        ("CXXFLAGS", joined(&variant.flags.cxxflags, compiled)),
        ("LDFLAGS", joined(&variant.flags.ldflags, &linked)),
        ("AR", compiler.ar.display().to_string()),
        ("RANLIB", compiler.ranlib.display().to_string()),
        ("NM", compiler.nm.display().to_string()),
        ("PKG_CONFIG_LIBDIR", abi.pkg_config_libdir.to_owned()),
        ("HOST_TRIPLET", abi.triplet.to_owned()),
    ])
}

fn profile_options(family: Family, stage: Stage) -> String {
    match (family, stage) {
        (_, Stage::Plain) => String::new(),
        (Family::Gcc, Stage::Instrumented(folder)) => {
            format!("-fprofile-generate={} -fprofile-update=prefer-atomic", folder.display())
        }
        // Code that the training did not reach keeps its ordinary optimisation; threads may have lost counts.
        (Family::Gcc, Stage::Guided(folder)) => format!(
            "-fprofile-use={} -fprofile-partial-training -fprofile-correction -Wno-missing-profile",
            folder.display()
        ),
        (Family::Clang, Stage::Instrumented(folder)) => {
            format!("-fprofile-instr-generate={}/%p-%m.profraw", folder.display())
        }
        (Family::Clang, Stage::Guided(folder)) => {
            format!("-fprofile-instr-use={}/merged.profdata", folder.display())
        }
    }
}
