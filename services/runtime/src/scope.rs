//! What a key may be used for.

use std::{fmt, str::FromStr};

/// One kind of use: a resource, and what may be done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Ask questions, decide about what they wait for, and everything about the runs that answer them.
    Ask,
    /// See runs, models and tools.
    Read,
    /// See what was done in the account.
    Audit,
    /// See the metrics of the server.
    Metrics,
    /// Make accounts and keys, and see what was done in all accounts.
    Admin,
}

/// No scope has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no scope `{0}`; there are robusta_ai:write, robusta_ai:read, audit:read, metrics:read and admin:write"
)]
pub struct UnknownScope(String);

impl Scope {
    const ALL: [Self; 5] = [Self::Ask, Self::Read, Self::Audit, Self::Metrics, Self::Admin];

    /// Its name, `RESOURCE:PERMISSION`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "robusta_ai:write",
            Self::Read => "robusta_ai:read",
            Self::Audit => "audit:read",
            Self::Metrics => "metrics:read",
            Self::Admin => "admin:write",
        }
    }

    /// Whether who has this scope may do what needs the other one.
    fn covers(self, needed: Self) -> bool {
        let more = match self {
            Self::Ask => needed == Self::Read,
            Self::Admin => needed == Self::Audit || needed == Self::Metrics,
            Self::Read | Self::Audit | Self::Metrics => false,
        };
        more || self == needed
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(name: &str) -> Result<Self, UnknownScope> {
        let found = Self::ALL.into_iter().find(|scope| scope.name() == name);
        found.ok_or_else(|| UnknownScope(name.to_owned()))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Everything that a key may be used for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    /// All there are.
    pub fn all() -> Self {
        Self(Scope::ALL.to_vec())
    }

    /// These.
    pub fn of(scopes: impl Into<Vec<Scope>>) -> Self {
        Self(scopes.into())
    }

    /// Reads names. What is not known allows nothing.
    pub fn read<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = Scope> {
        self.0.iter().copied()
    }

    /// Whether what needs a scope may be done.
    pub fn allow(&self, needed: Scope) -> bool {
        self.0.iter().any(|scope| scope.covers(needed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_allows_what_it_says_and_little_more() {
        let allowed = |name| {
            let scopes = Scopes::read([name]);
            Scope::ALL.into_iter().filter(|needed| scopes.allow(*needed)).map(Scope::name).collect::<Vec<_>>()
        };
        assert_eq!(allowed("robusta_ai:write"), ["robusta_ai:write", "robusta_ai:read"]);
        assert_eq!(allowed("robusta_ai:read"), ["robusta_ai:read"]);
        assert_eq!(allowed("audit:read"), ["audit:read"]);
        assert_eq!(allowed("metrics:read"), ["metrics:read"]);
        assert_eq!(allowed("admin:write"), ["audit:read", "metrics:read", "admin:write"]);
        assert_eq!(allowed("everything"), [""; 0]);
        assert!(Scope::ALL.into_iter().all(|needed| Scopes::all().allow(needed)));
    }
}
