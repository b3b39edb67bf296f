//! Reading a program's options the way the program does, so that no spelling of one is missed.

use super::{objection::Objection, script::Word};

/// The options that a program may be given. Everything else is refused.
pub(super) struct Options<'a> {
    /// Letters of short options without a value.
    pub(super) short: &'a str,
    /// Letters of short options that take a value.
    pub(super) short_valued: &'a str,
    /// Long options without a value, or with one after `=`.
    pub(super) long: &'a [&'a str],
    /// Long options that take a value, after `=` or as the next argument.
    pub(super) long_valued: &'a [&'a str],
}

/// Arguments, told apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    /// Options by their name, `-x` or `--name`, with their value.
    pub(super) options: Vec<(String, Option<String>)>,
    /// The other arguments.
    pub(super) operands: Vec<String>,
}

impl Given {
    pub(super) fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(own, _)| own == name)
    }
}

impl Options<'_> {
    /// Reads `arguments`; says which one is not in the list.
    pub(super) fn read(&self, arguments: &[String]) -> Result<Given, Objection> {
        let mut given = Given::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument == "--" {
                given.operands.extend(rest.by_ref().cloned());
            } else if let Some(long) = argument.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (long, None),
                };
                let value = if self.long_valued.contains(&name) {
                    Some(value.map_or_else(|| next_value(argument, &mut rest), Ok)?)
                } else if self.long.contains(&name) {
                    value
                } else {
                    return Err(format!("its option `--{name}` is not allowed").into());
                };
                given.options.push((format!("--{name}"), value));
            } else if argument.len() > 1 && argument.starts_with('-') {
                self.cluster(argument, &mut rest, &mut given)?;
            } else {
                given.operands.push(argument.clone());
            }
        }
        Ok(given)
    }

    /// Reads `-abc`, where `b` may take `c`, or the next argument, as its value.
    fn cluster<'a>(
        &self,
        argument: &str,
        rest: &mut impl Iterator<Item = &'a String>,
        given: &mut Given,
    ) -> Result<(), String> {
        let mut letters = argument[1..].chars();
        while let Some(letter) = letters.next() {
            let name = format!("-{letter}");
            if self.short_valued.contains(letter) {
                let attached = letters.as_str();
                let value = if attached.is_empty() {
                    next_value(&name, rest)?
                } else {
                    attached.strip_prefix('=').unwrap_or(attached).to_owned()
                };
                given.options.push((name, Some(value)));
                return Ok(());
            }
            if !self.short.contains(letter) {
                return Err(format!("its option `{name}` is not allowed"));
            }
            given.options.push((name, None));
        }
        Ok(())
    }
}

/// The argument after an option. Where a program would take a dash for the next option, so must we: it is refused.
fn next_value<'a>(option: &str, rest: &mut impl Iterator<Item = &'a String>) -> Result<String, String> {
    let value = rest.next().ok_or_else(|| format!("its option `{option}` lacks a value"))?;
    match value.strip_prefix('-') {
        Some(after) if !after.starts_with(|c: char| c.is_ascii_digit()) => {
            Err(format!("the value of its option `{option}` starts with a dash"))
        }
        Some(_) | None => Ok(value.clone()),
    }
}

/// Options that a program, which may be given any other, may not be given.
pub(super) struct Except {
    /// Letters of short options. One of them anywhere in a cluster counts.
    pub(super) short: &'static str,
    /// Short options that take a value, after which a cluster ends.
    pub(super) valued: &'static str,
    /// Long options. Every abbreviation counts.
    pub(super) long: &'static [&'static str],
}

impl Except {
    /// Says which argument is not allowed.
    pub(super) fn check(&self, arguments: &[String]) -> Result<(), Objection> {
        // Also after `--`, which may be another option's value.
        for argument in arguments {
            let forbidden = if let Some(long) = argument.strip_prefix("--") {
                let name = long.split('=').next().unwrap_or(long);
                !name.is_empty() && self.long.iter().any(|own| own.starts_with(name))
            } else if let Some(cluster) = argument.strip_prefix('-') {
                let end = cluster.find(|c| self.valued.contains(c)).unwrap_or(cluster.len());
                cluster[..end].contains(|c| self.short.contains(c))
            } else {
                false
            };
            if forbidden {
                return Err(format!("its option `{argument}` is not allowed").into());
            }
        }
        Ok(())
    }
}

/// The arguments as text. One that starts with what matches file names could become an option.
pub(super) fn texts(words: &[Word]) -> Result<Vec<String>, String> {
    let may_become_option =
        |before: &String| before.is_empty() || (before.starts_with('-') && !before.contains('='));
    words
        .iter()
        .map(|word| match word.before_glob().filter(may_become_option) {
            Some(_) => Err(format!(
                "its argument `{}` starts with a wildcard; quote it, or start it with `./`",
                word.text()
            )),
            None => Ok(word.text()),
        })
        .collect()
}
