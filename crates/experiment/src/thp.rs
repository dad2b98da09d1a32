//! The settings of transparent huge pages by name.

use std::fmt;

use crate::model::Thp;

impl Thp {
    /// Every setting; the first is the default.
    pub const ALL: [Thp; 4] = [Thp::System, Thp::Always, Thp::Madvise, Thp::Never];

    /// The name in spec files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Thp::System => "system",
            Thp::Always => "always",
            Thp::Madvise => "madvise",
            Thp::Never => "never",
        }
    }

    /// The setting of that name, if there is one.
    pub fn find(name: &str) -> Option<Thp> {
        Thp::ALL.into_iter().find(|thp| thp.name() == name)
    }

    /// Whether huge pages may be a reason why two programs differ in resident memory, by their settings where they are known: these
    /// differ, or they ask for huge pages everywhere.
    pub fn may_explain_difference(one: Option<Thp>, other: Option<Thp>) -> bool {
        one != other || one == Some(Thp::Always)
    }
}

impl fmt::Display for Thp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
