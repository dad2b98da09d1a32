//! What is missing here, why, and what mends it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something this machine cannot do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lack {
    /// Why not, in one line.
    pub reason: String,
    /// The command (or, where no command can, the step) that mends it; absent if nothing on this machine does.
    pub mend: Option<String>,
}

impl Lack {
    /// A lack that nothing on this machine mends.
    pub fn lasting(reason: impl Into<String>) -> Lack {
        Lack { reason: reason.into(), mend: None }
    }

    /// A lack with its mend.
    pub fn mended(reason: impl Into<String>, mend: impl Into<String>) -> Lack {
        Lack { reason: reason.into(), mend: Some(mend.into()) }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// How a `Result<T, Lack>` stands in JSON: `{"yes": …}` or `{"no": {"reason": …, "mend": …}}`.
/// For `#[serde(with = "crate::lack::answer")]`.
pub mod answer {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Lack;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Answer<T> {
        Yes(T),
        No(Lack),
    }

    /// Writes the answer.
    pub fn serialize<T: Serialize, S: Serializer>(
        result: &Result<T, Lack>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match result {
            Ok(value) => Answer::Yes(value).serialize(serializer),
            Err(lack) => Answer::<&T>::No(lack.clone()).serialize(serializer),
        }
    }

    /// Reads it back.
    pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Result<T, Lack>, D::Error> {
        Ok(match Answer::<T>::deserialize(deserializer)? {
            Answer::Yes(value) => Ok(value),
            Answer::No(lack) => Err(lack),
        })
    }
}
