//! Patterns over parameters of calls, as picomatch reads them in its bash mode.
//!
//! A pattern is compiled to steps; each maps the set of places where the text before it can end to that of places where
//! it can end itself. So a match takes time in proportion to pattern and text, whatever the pattern is.

mod parse;

/// Of longer patterns with wildcards, and of longer texts, nothing can be told.
const LONGEST_PATTERN: usize = 512;
const LONGEST_TEXT: usize = 8 << 10;

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Glob {
    pattern: String,
    negated: bool,
    /// The one text that it matches, if it has no wildcard.
    literal: Option<String>,
    /// `None` if the pattern has a form that is not known.
    steps: Option<Vec<Step>>,
}

/// Whether a pattern matches a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    Yes,
    No,
    /// What allows takes it for no, and what denies for yes.
    CannotTell,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Char(char),
    /// `?`
    NotSlash {
        nor_dot: bool,
    },
    /// `[a-c]`
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
    /// Any text in one line; with `not_dot`, none that begins with a dot.
    Star {
        not_dot: bool,
    },
    /// Any text in one line in which no segment of a path begins with a dot.
    Globstar,
    /// `{a,b}`
    Either(Vec<Vec<Step>>),
    Start,
    End,
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Self {
        let negations = pattern.len() - pattern.trim_start_matches('!').len();
        let rest = &pattern[negations..];
        let rest = rest.strip_prefix("./").unwrap_or(rest);
        let literal = (negations == 0).then(|| literal(rest)).flatten();
        let steps = match &literal {
            Some(_) => None,
            None if pattern.len() > LONGEST_PATTERN => None,
            None => parse::steps(rest, negations > 0),
        };
        Self { pattern: pattern.to_owned(), negated: negations % 2 == 1, literal, steps }
    }

    /// Whether it spells a text out.
    pub(super) fn spells(&self, text: &str) -> bool {
        self.pattern == text || self.literal.as_deref() == Some(text)
    }

    /// Whether it can be told of texts, unless they are very long.
    pub(super) fn is_known(&self) -> bool {
        self.literal.is_some() || self.steps.is_some()
    }

    /// Whether it is about paths from the root.
    pub(super) fn is_rooted(&self) -> bool {
        self.pattern.trim_start_matches('!').starts_with('/')
    }

    pub(super) fn matches(&self, text: &str) -> Match {
        if self.spells(text) {
            return Match::Yes;
        }
        if self.literal.is_some() {
            return Match::No;
        }
        let steps = self.steps.as_ref().filter(|_| text.len() <= LONGEST_TEXT);
        let Some(steps) = steps else { return Match::CannotTell };
        let text: Vec<char> = text.chars().collect();
        let mut ends = vec![false; text.len() + 1];
        ends[0] = true;
        let found = walk(steps, &text, ends).last() == Some(&true);
        let matches = if self.negated { !found && !text.iter().any(|c| ends_line(*c)) } else { found };
        if matches { Match::Yes } else { Match::No }
    }
}

/// The one text that a pattern matches.
fn literal(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.push(chars.next()?),
            '*' | '?' | '[' | ']' | '{' | '}' | '(' | ')' | '"' => return None,
            c => text.push(c),
        }
    }
    Some(text)
}

/// A pattern that matches a text and nothing else.
pub(super) fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        // `!` and `.` mean something at the start alone.
        if matches!(c, '\\' | '*' | '?' | '[' | ']' | '{' | '}' | '(' | ')' | '"' | '!')
            || (c == '.' && pattern.is_empty())
        {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// Where a text can end after these steps, given where it can end before them.
fn walk(steps: &[Step], text: &[char], mut ends: Vec<bool>) -> Vec<bool> {
    for step in steps {
        if !ends.contains(&true) {
            break;
        }
        ends = pass(step, text, ends);
    }
    ends
}

fn pass(step: &Step, text: &[char], ends: Vec<bool>) -> Vec<bool> {
    let one = |fits: &dyn Fn(char) -> bool| {
        let mut after = vec![false; ends.len()];
        for (at, c) in text.iter().enumerate() {
            after[at + 1] = ends[at] && fits(*c);
        }
        after
    };
    match step {
        Step::Char(wanted) => one(&|c| c == *wanted),
        Step::NotSlash { nor_dot } => one(&|c| c != '/' && !(*nor_dot && c == '.')),
        Step::Class { negated, ranges } => one(&|c| {
            let within = ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
            if *negated { !within && c != '/' } else { within }
        }),
        Step::Star { not_dot } => {
            let mut after = ends;
            if *not_dot {
                text.iter().enumerate().for_each(|(at, c)| after[at] &= *c != '.');
            }
            spread(text, after, |at| !ends_line(text[at]))
        }
        Step::Globstar => spread(text, ends, |at| {
            let hidden = (at == 0 && text[0] == '.') || (text[at] == '/' && text.get(at + 1) == Some(&'.'));
            !ends_line(text[at]) && !hidden
        }),
        Step::Either(branches) => {
            let mut after = vec![false; ends.len()];
            for branch in branches {
                let reached = walk(branch, text, ends.clone());
                after.iter_mut().zip(reached).for_each(|(after, reached)| *after |= reached);
            }
            after
        }
        Step::Start => ends.iter().enumerate().map(|(at, end)| *end && at == 0).collect(),
        Step::End => ends.iter().enumerate().map(|(at, end)| *end && at == text.len()).collect(),
    }
}

/// Goes on over every character that may be passed.
fn spread(text: &[char], mut ends: Vec<bool>, may_pass: impl Fn(usize) -> bool) -> Vec<bool> {
    for at in 0..text.len() {
        ends[at + 1] |= ends[at] && may_pass(at);
    }
    ends
}

/// What the dot of JavaScript's expressions does not match.
pub(super) fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests;
