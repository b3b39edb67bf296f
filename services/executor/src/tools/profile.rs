//! Profiles: what tools are called and how they answer, in the words of one kind of client.

use std::str::FromStr;

/// Whose tools a caller wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Profile {
    /// HolmesGPT's.
    #[default]
    Holmes,
    /// Those of agents that work on files.
    Harness,
    /// That of agents that write code.
    Rlm,
}

/// There is no such profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool profile `{0}`: use `harness`, `rlm`, or nothing")]
pub(crate) struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        match name {
            "" => Ok(Self::Holmes),
            "harness" => Ok(Self::Harness),
            "rlm" => Ok(Self::Rlm),
            other => Err(UnknownProfile(other.to_owned())),
        }
    }
}
