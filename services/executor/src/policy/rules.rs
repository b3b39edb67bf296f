//! What an operator and the persons who approve add to the built-in list: prefixes of commands.

use std::str::FromStr;

/// The programs that run unasked, before any prefix is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BuiltinAllowlist {
    /// None.
    None,
    /// kubectl, and what filters its output.
    Core,
    /// Also what shows files and the state of the machine.
    #[default]
    Extended,
}

impl FromStr for BuiltinAllowlist {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        match name {
            "none" => Ok(Self::None),
            "core" => Ok(Self::Core),
            "extended" => Ok(Self::Extended),
            _ => Err(()),
        }
    }
}

/// The beginning of commands, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefix(Vec<String>);

impl Prefix {
    /// `None` if there is no word in it.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    pub(super) fn words(&self) -> &[String] {
        &self.0
    }

    /// Whether the command starts with these words; the last one may go on with a path that leads nowhere else.
    pub(super) fn allows(&self, command: &[String]) -> bool {
        let Some((last, before)) = self.0.split_last() else { return false };
        let goes_on = |word: &String| {
            let rest = word.strip_prefix(last.as_str());
            rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with('/') && !rest.contains("..")))
        };
        command.get(..before.len()).is_some_and(|start| start == before)
            && command.get(before.len()).is_some_and(goes_on)
    }

    /// Whether these words occur in the command in this order, the first one as the program. So no option between
    /// them, no quote and no path before the program hides them. The last may go on with a path, or be a plural.
    pub(super) fn forbids(&self, command: &[String]) -> bool {
        let Some((last, before)) = self.0.split_last() else { return false };
        let goes_on = |word: &str| {
            word.strip_prefix(last.as_str())
                .map(|rest| rest.strip_prefix('s').unwrap_or(rest))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut words = command.iter().flat_map(|word| word.split_whitespace());
        let Some(program) = words.next() else { return false };
        let base = program.rsplit('/').next().unwrap_or_default();
        match before.split_first() {
            None => goes_on(program) || goes_on(base),
            Some((first, middle)) => {
                (first == program || first == base)
                    && middle.iter().all(|own| words.any(|word| word == own))
                    && words.any(goes_on)
            }
        }
    }
}

/// The rules that an operator may set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) builtin: BuiltinAllowlist,
    pub(crate) allow: Vec<Prefix>,
    pub(crate) deny: Vec<Prefix>,
}
