//! What the operator adds to the built-in rules, and which of these are off.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Why the rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("{path} is wrong: {reason}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A rule is switched off that is not there.
    #[error("there is no rule `{name}` to switch off; there are {known}")]
    Unknown {
        /// What was named.
        name: String,
        /// What there is.
        known: String,
    },
    /// A pattern is no regular expression, or one that is too big.
    #[error("the pattern of the rule `{name}` cannot be used: {reason}")]
    Pattern {
        /// Its rule.
        name: String,
        /// What is wrong.
        reason: String,
    },
}

/// The operator's part of the rules.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Names of built-in rules that are off.
    #[serde(default)]
    pub(super) disable: Vec<String>,
    /// More rules.
    #[serde(default)]
    pub(super) rules: Vec<Rule>,
}

/// A rule of the operator.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) name: String,
    /// A regular expression; what its first group matches is masked, or all of it if it has none.
    pub(super) pattern: String,
}

impl Settings {
    /// Reads them from a file.
    pub(crate) fn load(path: &Path) -> Result<Self, RedactError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| RedactError::Read { path: path.to_owned(), source })?;
        serde_saphyr::from_str(&text)
            .map_err(|error| RedactError::Syntax { path: path.to_owned(), reason: error.to_string() })
    }
}
