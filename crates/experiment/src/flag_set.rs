//! Flag sets: the built-in ones, and literal options.

use crate::model::FlagSet;

/// A flag set that needs no `[flags]` section.
struct BuiltIn {
    name: &'static str,
    /// For CFLAGS and CXXFLAGS.
    options: &'static str,
    ldflags: &'static str,
    profile_guided: bool,
}

#[rustfmt::skip]
const BUILT_IN: [BuiltIn; 4] = [
    // The linker compiles again under LTO, so it needs the optimisation level, too (gcc(1), -flto).
    BuiltIn { name: "lto",       options: "-O2 -flto",          ldflags: "-O2 -flto", profile_guided: false },
    BuiltIn { name: "fast-math", options: "-O3 -ffast-math",    ldflags: "",          profile_guided: false },
    BuiltIn { name: "native",    options: "-O3 -march=native",  ldflags: "",          profile_guided: false },
    BuiltIn { name: "pgo",       options: "-O2",                ldflags: "",          profile_guided: true },
];

/// The default compiler options.
pub const DEFAULT: &str = "-O2";

/// The names of the built-in sets.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|set| set.name)
}

/// The built-in set of that name, if there is one.
pub fn built_in(name: &str) -> Option<FlagSet> {
    let set = BUILT_IN.iter().find(|set| set.name == name)?;
    Some(FlagSet {
        name: set.name.to_owned(),
        cflags: set.options.to_owned(),
        cxxflags: set.options.to_owned(),
        ldflags: set.ldflags.to_owned(),
        profile_guided: set.profile_guided,
        train: None,
    })
}

/// Whether a value of the axis is literal options instead of a name.
pub fn is_options(text: &str) -> bool {
    text.starts_with('-')
}

/// The set that consists of these options, for C and C++ alike.
pub fn options(text: &str) -> FlagSet {
    FlagSet {
        name: text.to_owned(),
        cflags: text.to_owned(),
        cxxflags: text.to_owned(),
        ldflags: String::new(),
        profile_guided: false,
        train: None,
    }
}

/// The set of a finished binary: the options it was compiled with are unknown.
pub fn finished() -> FlagSet {
    options("")
}
