//! How certain a cause is.

/// How certain a cause or a type is. The confidence of an interval is another thing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// Inferred from a size alone, one of several that are possible, or within what recordings of one variant differ by. It
    /// does not count as explained.
    #[default]
    Low,
    /// The files or records say it, and one assumption is needed; or it was recorded once.
    Medium,
    /// Counted in the files, or in records that differ by more than those of one variant.
    High,
}

impl Certainty {
    /// All, the lowest first.
    pub const ALL: [Certainty; 3] = [Certainty::Low, Certainty::Medium, Certainty::High];

    /// `low`, `medium` or `high`.
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Low => "low",
            Certainty::Medium => "medium",
            Certainty::High => "high",
        }
    }

    /// The certainty of that name, if there is one.
    ///
    /// ```
    /// use widthwise_anatomy::Certainty;
    /// assert!(Certainty::ALL.iter().all(|one| Certainty::parse(one.name()) == Some(*one)));
    /// assert_eq!(Certainty::parse("sure"), None);
    /// ```
    pub fn parse(name: &str) -> Option<Certainty> {
        Certainty::ALL.into_iter().find(|one| one.name() == name)
    }
}
