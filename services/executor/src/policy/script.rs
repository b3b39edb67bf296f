//! The commands that can be judged: programs with literal arguments, and how they are joined.
//!
//! A script prints itself with everything quoted that is not meant to be expanded. That text is what runs, so
//! that a shell cannot read anything into a command that was not judged.

use std::fmt;

/// Pipelines in their order, each with what joins it to the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) first: Pipeline,
    pub(super) rest: Vec<(Join, Pipeline)>,
}

impl Script {
    /// Every program that would run.
    pub(super) fn commands(&self) -> impl Iterator<Item = &Simple> {
        std::iter::once(&self.first)
            .chain(self.rest.iter().map(|(_, pipeline)| pipeline))
            .flat_map(|it| &it.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Join {
    Then,
    And,
    Or,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pipeline(pub(super) Vec<Simple>);

/// A program, its arguments and where its streams go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) program: String,
    pub(super) arguments: Vec<Word>,
    pub(super) redirects: Vec<Redirect>,
}

/// Redirects that write no file and read none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    DiscardOutput,
    DiscardErrors,
    DiscardBoth,
    ErrorsToOutput,
    OutputToErrors,
    EmptyInput,
}

/// An argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word(pub(super) Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Exactly this text.
    Literal(String),
    /// `*` or `?`, matched against file names.
    Glob(char),
    /// `~`, the home directory.
    Home,
}

impl Word {
    /// Adds text that stands for itself.
    pub(super) fn push_literal(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Literal(last)) => last.push_str(text),
            Some(Piece::Glob(_) | Piece::Home) | None if text.is_empty() => {}
            Some(Piece::Glob(_) | Piece::Home) | None => self.0.push(Piece::Literal(text.to_owned())),
        }
    }

    /// The word as one would write it without quotes.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Glob(symbol) => text.push(*symbol),
                Piece::Home => text.push('~'),
            }
        }
        text
    }

    /// The text before the first character that matches file names; `None` if nothing does.
    pub(super) fn before_glob(&self) -> Option<String> {
        let glob = self.0.iter().position(|piece| matches!(piece, Piece::Glob(_)))?;
        Some(Self(self.0[..glob].to_vec()).text())
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        for (join, pipeline) in &self.rest {
            let join = match join {
                Join::Then => "; ",
                Join::And => " && ",
                Join::Or => " || ",
            };
            write!(f, "{join}{pipeline}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, command) in self.0.iter().enumerate() {
            write!(f, "{}{command}", if index == 0 { "" } else { " | " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Simple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quote(f, &self.program)?;
        for word in &self.arguments {
            write!(f, " {word}")?;
        }
        for redirect in &self.redirects {
            f.write_str(match redirect {
                Redirect::DiscardOutput => " >/dev/null",
                Redirect::DiscardErrors => " 2>/dev/null",
                Redirect::DiscardBoth => " >/dev/null 2>&1",
                Redirect::ErrorsToOutput => " 2>&1",
                Redirect::OutputToErrors => " >&2",
                Redirect::EmptyInput => " </dev/null",
            })?;
        }
        Ok(())
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return quote(f, "");
        }
        for (index, piece) in self.0.iter().enumerate() {
            match piece {
                // A slash must stay bare for the shell to see where `~` ends.
                Piece::Literal(literal) if index == 1 && self.0[0] == Piece::Home => {
                    let rest = literal.strip_prefix('/').map_or(literal.as_str(), |rest| {
                        let _ = f.write_str("/");
                        rest
                    });
                    quote(f, rest)?;
                }
                Piece::Literal(literal) => quote(f, literal)?,
                Piece::Glob(symbol) => write!(f, "{symbol}")?,
                Piece::Home => f.write_str("~")?,
            }
        }
        Ok(())
    }
}

fn quote(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    write!(f, "'{}'", text.replace('\'', r"'\''"))
}
