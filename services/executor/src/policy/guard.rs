//! What is refused before the parser sees it.
//!
//! The parser recurses without a limit and takes exponential time on some unclosed brackets. The constructs that
//! it could do so on are never allowed, so they are found by a plain scan of quotes first.

use std::{iter::Peekable, str::Chars};

/// The longest command line that is parsed.
const LENGTH: usize = 16 << 10;
/// The most words that could open a nested construct.
const DEPTH: usize = 32;

/// What joins conditions within `[[`, each in the one before.
const CONDITIONS: [&str; 2] = ["&&", "||"];

/// The most brackets and backquotes in what is surveyed. The parser's time grows about eightfold with each pair of
/// them that is left open.
const BRACKETS: usize = 12;

/// Why a command line is not a script of literal commands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("The command is longer than {LENGTH} bytes.")]
    TooLong,
    #[error("The command is nested too deeply.")]
    TooDeep,
    #[error("The command contains a control character.")]
    ControlCharacter,
    #[error("The command is empty.")]
    Empty,
    #[error("The command could not be parsed as bash.")]
    Syntax,
    #[error("The command uses {0}, which is not allowed.")]
    Construct(&'static str),
}

impl Refusal {
    /// Whether nobody should be asked either: it cannot be shown, or not be read in time.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::TooLong | Self::TooDeep | Self::ControlCharacter | Self::Empty => true,
            Self::Syntax | Self::Construct(_) => false,
        }
    }
}

pub(super) const VARIABLE: &str = "a variable (`$…`; single quotes keep a `$` as it is)";
pub(super) const SUBSTITUTION: &str = "a command substitution";

/// Refuses what is too big, and every expansion or bracket outside quotes.
pub(super) fn guard(text: &str) -> Result<(), Refusal> {
    if text.len() > LENGTH {
        return Err(Refusal::TooLong);
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return Err(Refusal::ControlCharacter);
    }
    let nests = |word: &&str| {
        matches!(*word, "!" | "if" | "elif" | "while" | "until" | "for" | "case" | "select" | "coproc")
    };
    if text.split(|c: char| c.is_whitespace() || ";&|(){}`".contains(c)).filter(nests).count() > DEPTH {
        return Err(Refusal::TooDeep);
    }
    let conditions = || CONDITIONS.iter().map(|join| text.matches(join).count()).sum::<usize>();
    if text.contains("[[") && conditions() > DEPTH {
        return Err(Refusal::TooDeep);
    }
    scan(&mut text.chars().peekable())
}

/// Refuses more brackets than can be read in time, closed or not.
///
/// Here-documents are refused too: some take the parser all memory.
pub(super) fn shallow(text: &str) -> Result<(), Refusal> {
    if text.contains("<<") {
        return Err(Refusal::Syntax);
    }
    let text = without_plain_quotes(text);
    let mut weight = 0;
    let mut before = ' ';
    for symbol in text.chars() {
        weight += match symbol {
            '(' | '{' | '[' if before == '$' => 2,
            '(' | '`' => 1,
            _ => 0,
        };
        before = symbol;
    }
    let braces = text.chars().filter(|c| matches!(c, '{' | '[')).count();
    if weight > BRACKETS || braces > DEPTH { Err(Refusal::TooDeep) } else { Ok(()) }
}

/// The text without what is in single quotes, up to the first character that could make them something else.
fn without_plain_quotes(text: &str) -> String {
    let end = text.find(['"', '`', '\\', '#', '$', '(', '<']).unwrap_or(text.len());
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, quoted)) = rest.split_once('\'') {
        let at = text.len() - quoted.len();
        let Some((_, after)) = quoted.split_once('\'').filter(|_| at <= end) else { break };
        plain.push_str(before);
        rest = after;
    }
    plain.push_str(rest);
    plain
}

fn scan(chars: &mut Peekable<Chars<'_>>) -> Result<(), Refusal> {
    let mut word_starts = true;
    while let Some(symbol) = chars.next() {
        match symbol {
            '\\' => drop(chars.next()),
            '\'' => chars.by_ref().find(|c| *c == '\'').map(drop).ok_or(Refusal::Syntax)?,
            '"' => double_quoted(chars)?,
            '#' if word_starts => drop(chars.by_ref().find(|c| *c == '\n')),
            '$' if matches!(chars.peek(), Some('\'' | '"')) => {
                return Err(Refusal::Construct("`$'…'` or `$\"…\"`"));
            }
            '<' if chars.peek() == Some(&'<') => return Err(Refusal::Construct("a here-document")),
            '<' | '>' if chars.peek() == Some(&'(') => {
                return Err(Refusal::Construct("a process substitution"));
            }
            '(' | ')' => return Err(Refusal::Construct("a group, a function or an unquoted bracket")),
            '{' if word_starts && chars.peek().is_none_or(|c| c.is_whitespace()) => {
                return Err(Refusal::Construct("a group"));
            }
            _ => expansion(symbol, chars.peek())?,
        }
        word_starts = symbol.is_whitespace() || matches!(symbol, ';' | '|' | '&' | '<' | '>');
    }
    Ok(())
}

fn double_quoted(chars: &mut Peekable<Chars<'_>>) -> Result<(), Refusal> {
    while let Some(symbol) = chars.next() {
        match symbol {
            '"' => return Ok(()),
            '\\' => drop(chars.next()),
            _ => expansion(symbol, chars.peek())?,
        }
    }
    Err(Refusal::Syntax)
}

fn expansion(symbol: char, next: Option<&char>) -> Result<(), Refusal> {
    match (symbol, next) {
        ('`', _) | ('$', Some('(')) => Err(Refusal::Construct(SUBSTITUTION)),
        ('$', Some(next)) if next.is_ascii_alphanumeric() || "_{[?!#@*$-".contains(*next) => {
            Err(Refusal::Construct(VARIABLE))
        }
        _ => Ok(()),
    }
}
