//! What is missing here, why, and what fixes it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something this machine cannot do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// Why not, in one line.
    pub reason: String,
    /// The command (or, where no command can, the step) that fixes it; absent if nothing on this machine does.
    pub fix: Option<String>,
}

impl Unavailable {
    /// Something unavailable without a fix.
    pub fn permanent(reason: impl Into<String>) -> Unavailable {
        Unavailable { reason: reason.into(), fix: None }
    }

    /// Something unavailable with its fix.
    pub fn with_fix(reason: impl Into<String>, fix: impl Into<String>) -> Unavailable {
        Unavailable { reason: reason.into(), fix: Some(fix.into()) }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// How a `Result<T, Unavailable>` stands in JSON: `{"yes": …}` or `{"no": {"reason": …, "fix": …}}`.
/// For `#[serde(with = "crate::unavailable::outcome")]`.
pub mod outcome {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Unavailable;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Outcome<T> {
        Yes(T),
        No(Unavailable),
    }

    /// Writes the result.
    pub fn serialize<T: Serialize, S: Serializer>(
        result: &Result<T, Unavailable>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match result {
            Ok(value) => Outcome::Yes(value).serialize(serializer),
            Err(unavailable) => Outcome::<&T>::No(unavailable.clone()).serialize(serializer),
        }
    }

    /// Reads it back.
    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Result<T, Unavailable>, D::Error> {
        Ok(match Outcome::<T>::deserialize(deserializer)? {
            Outcome::Yes(value) => Ok(value),
            Outcome::No(unavailable) => Err(unavailable),
        })
    }
}
