//! The grammar of a patch.
//!
//! ```text
//! *** Begin Patch
//! *** Add File: PATH        then the lines of the file, each after a `+`
//! *** Delete File: PATH
//! *** Update File: PATH     then hunks: `@@`, and lines after ` ` (stays), `-` (goes) or `+` (comes)
//! *** End Patch
//! ```

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const HUNK: &str = "@@";

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Add { path: String, lines: Vec<String> },
    Delete { path: String },
    Update { path: String, hunks: Vec<Hunk> },
}

/// Lines that stand in a file one after the other, and those that take their place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    pub(super) old: Vec<String>,
    pub(super) new: Vec<String>,
}

/// A text that is no patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the patch is empty: nothing stands between `{BEGIN}` and `{END}`")]
    Empty,
    #[error("the patch begins with `{BEGIN}` and does not end with `{END}`")]
    Open,
    #[error("line {0} belongs to no file: expected `{ADD}`, `{DELETE}` or `{UPDATE}` with a path")]
    Stray(usize),
    #[error("line {0} names no path")]
    Nameless(usize),
    #[error("line {0} must begin with a space, `-`, `+` or `{HUNK}`")]
    Line(usize),
    #[error("line {0} belongs to no hunk: a line `{HUNK}` must come first")]
    NoHunk(usize),
    #[error("the update of `{0}` changes nothing")]
    NoChange(String),
    #[error("the deletion of `{path}` is followed by line {line}, which says nothing about it")]
    AfterDelete { path: String, line: usize },
}

/// A line with its number.
type Line<'a> = (usize, &'a str);

/// Reads a patch. Its frame, `*** Begin Patch` and `*** End Patch`, may be left out as a whole.
pub(crate) fn parse(text: &str) -> Result<Vec<Change>, Malformed> {
    let lines: Vec<Line<'_>> = (1..).zip(text.split('\n')).collect();
    let mut rest = framed(trimmed(&lines))?;
    let mut changes = Vec::new();
    while let Some((&(number, head), after)) = rest.split_first() {
        if head.trim().is_empty() {
            rest = after;
            continue;
        }
        let length = after.iter().take_while(|(_, line)| !begins_file(line)).count();
        let (body, next) = after.split_at(length);
        changes.push(change(number, head, body)?);
        rest = next;
    }
    if changes.is_empty() { Err(Malformed::Empty) } else { Ok(changes) }
}

/// Without empty lines before and after.
fn trimmed<'a, 'b>(lines: &'b [Line<'a>]) -> &'b [Line<'a>] {
    let is_blank = |line: &Line<'_>| line.1.trim().is_empty();
    let start = lines.iter().take_while(|line| is_blank(line)).count();
    let lines = &lines[start..];
    &lines[..lines.len() - lines.iter().rev().take_while(|line| is_blank(line)).count()]
}

fn framed<'a, 'b>(lines: &'b [Line<'a>]) -> Result<&'b [Line<'a>], Malformed> {
    match lines {
        [(_, first), within @ .., (_, last)] if first.trim_end() == BEGIN && last.trim_end() == END => {
            Ok(within)
        }
        [(_, first), ..] if first.trim_end() == BEGIN => Err(Malformed::Open),
        unframed => Ok(unframed),
    }
}

fn begins_file(line: &str) -> bool {
    [ADD, DELETE, UPDATE].iter().any(|head| line.starts_with(head))
}

fn change(number: usize, head: &str, body: &[Line<'_>]) -> Result<Change, Malformed> {
    let path = |rest: &str| match rest.trim() {
        "" => Err(Malformed::Nameless(number)),
        path => Ok(path.to_owned()),
    };
    if let Some(rest) = head.strip_prefix(ADD) {
        Ok(Change::Add { path: path(rest)?, lines: added(body) })
    } else if let Some(rest) = head.strip_prefix(DELETE) {
        let path = path(rest)?;
        match trimmed(body) {
            [] => Ok(Change::Delete { path }),
            [(line, _), ..] => Err(Malformed::AfterDelete { path, line: *line }),
        }
    } else if let Some(rest) = head.strip_prefix(UPDATE) {
        let path = path(rest)?;
        let hunks = hunks(body)?;
        let changes = !hunks.is_empty() && hunks.iter().all(|hunk| hunk.old != hunk.new);
        if changes { Ok(Change::Update { path, hunks }) } else { Err(Malformed::NoChange(path)) }
    } else {
        Err(Malformed::Stray(number))
    }
}

/// The lines of a new file. Some write them without the `+`: then none may have it by rule.
fn added(body: &[Line<'_>]) -> Vec<String> {
    let end = body.len() - body.iter().rev().take_while(|(_, line)| line.is_empty()).count();
    let body = &body[..end];
    let marked: Option<Vec<_>> = body.iter().map(|(_, line)| line.strip_prefix('+')).collect();
    let lines = marked.unwrap_or_else(|| body.iter().map(|(_, line)| *line).collect());
    lines.into_iter().map(str::to_owned).collect()
}

fn hunks(body: &[Line<'_>]) -> Result<Vec<Hunk>, Malformed> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for (number, line) in body {
        if line.starts_with(HUNK) {
            // What follows is for people.
            hunks.push(Hunk::default());
            continue;
        }
        let hunk = hunks.last_mut().ok_or(Malformed::NoHunk(*number))?;
        match line.split_at_checked(1) {
            None if line.is_empty() => hunk.keep(""),
            Some((" ", rest)) => hunk.keep(rest),
            Some(("-", rest)) => hunk.old.push(rest.to_owned()),
            Some(("+", rest)) => hunk.new.push(rest.to_owned()),
            Some(_) | None => return Err(Malformed::Line(*number)),
        }
    }
    Ok(hunks)
}

impl Hunk {
    fn keep(&mut self, line: &str) {
        self.old.push(line.to_owned());
        self.new.push(line.to_owned());
    }
}
