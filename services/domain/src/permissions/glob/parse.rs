//! A pattern as steps.

use super::Step;

/// Braces within braces.
const DEEPEST: u32 = 8;

/// The steps of a pattern; `None` if it has a form that is not known.
pub(super) fn steps(pattern: &str, negated: bool) -> Option<Vec<Step>> {
    Parser { rest: pattern.chars().collect(), at: 0, segment: 0 }.parse(negated)
}

struct Parser {
    rest: Vec<char>,
    at: usize,
    /// Where the last segment of a path begins.
    segment: usize,
}

impl Parser {
    fn parse(mut self, negated: bool) -> Option<Vec<Step>> {
        let special = |c: &char| matches!(c, '/' | '(' | ')' | '[' | ']' | '{' | '}' | '"');
        // The original has two readings: in a pattern without these, each star minds dots behind slashes.
        if !negated && self.rest.first() != Some(&'*') && !self.rest.iter().any(special) {
            return self.plain();
        }
        let steps = self.steps(0)?;
        (self.at == self.rest.len()).then_some(steps)
    }

    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn plain(&mut self) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            steps.push(match c {
                '\\' => self.escape()?,
                '*' => {
                    self.skip_stars();
                    Step::Globstar
                }
                '?' => Step::NotSlash { nor_dot: steps.is_empty() },
                c => Step::Char(c),
            });
        }
        Some(steps)
    }

    fn escape(&mut self) -> Option<Step> {
        let c = self.peek()?;
        self.at += 1;
        Some(Step::Char(c))
    }

    fn skip_stars(&mut self) -> usize {
        let stars = self.rest[self.at..].iter().take_while(|c| **c == '*').count();
        self.at += stars;
        stars
    }

    /// Steps up to the end, or in braces up to what ends this branch.
    fn steps(&mut self, depth: u32) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        while let Some(c) = self.peek() {
            if depth > 0 && matches!(c, ',' | '}') {
                break;
            }
            let at_segment = self.at == self.segment;
            self.at += 1;
            match c {
                '\\' => steps.push(self.escape()?),
                '?' => steps.push(Step::NotSlash { nor_dot: at_segment }),
                '*' => self.stars(&mut steps, at_segment, depth)?,
                '[' => steps.push(self.class()?),
                '{' => self.braces(&mut steps, depth)?,
                // Groups and quotes are not known here.
                '(' | ')' | '"' | ']' | '}' => return None,
                c => steps.push(Step::Char(c)),
            }
            if c == '/' {
                self.segment = self.at;
            }
        }
        Some(steps)
    }

    fn stars(&mut self, steps: &mut Vec<Step>, at_segment: bool, depth: u32) -> Option<()> {
        let more = self.skip_stars();
        if more > 1 {
            return None;
        }
        let next = self.peek();
        let whole = more > 0 && at_segment && depth == 0 && next.is_none_or(|c| c == '/');
        if !whole {
            steps.push(Step::Star { not_dot: at_segment });
            return Some(());
        }
        match (steps.len(), next) {
            // `**/…`: nothing, or folders
            (0, Some(_)) => {
                self.at += 1;
                self.segment = self.at;
                let folders = vec![Step::Globstar, Step::Char('/')];
                steps.push(Step::Either(vec![vec![Step::Start], vec![Step::Char('/')], folders]));
            }
            // `…/**/…`: a slash, or folders between two
            (2.., Some(_)) => {
                self.at += 1;
                self.segment = self.at;
                steps.pop();
                let slash = Step::Char('/');
                let folders = vec![slash.clone(), Step::Globstar, slash.clone()];
                steps.push(Step::Either(vec![folders, vec![slash]]));
            }
            // `…/**`: the folder itself, or what is in it
            (2.., None) => {
                steps.pop();
                steps.push(Step::Either(vec![vec![Step::Char('/'), Step::Globstar], vec![Step::End]]));
            }
            (..) => steps.push(Step::Globstar),
        }
        Some(())
    }

    fn class(&mut self) -> Option<Step> {
        let close = self.rest[self.at..].iter().position(|c| *c == ']').filter(|length| *length > 0)?;
        let inner: Vec<char> = self.rest[self.at..self.at + close].to_vec();
        if inner.iter().any(|c| matches!(c, '[' | '\\' | ':')) {
            return None;
        }
        self.at += close + 1;
        let (negated, inner) = match inner.split_first() {
            Some(('^', inner)) => (true, inner),
            _ => (false, inner.as_slice()),
        };
        let mut ranges = Vec::new();
        let mut at = 0;
        while let Some(low) = inner.get(at) {
            match (inner.get(at + 1), inner.get(at + 2)) {
                (Some('-'), Some(high)) => {
                    ranges.push((*low, *high));
                    at += 3;
                }
                _ => {
                    ranges.push((*low, *low));
                    at += 1;
                }
            }
        }
        Some(Step::Class { negated, ranges })
    }

    /// A choice; braces without a comma are text.
    fn braces(&mut self, steps: &mut Vec<Step>, depth: u32) -> Option<()> {
        if depth == DEEPEST {
            return None;
        }
        let mut branches = Vec::new();
        loop {
            branches.push(self.steps(depth + 1)?);
            let end = self.peek()?;
            self.at += 1;
            if end == '}' {
                break;
            }
        }
        let is_range =
            |branch: &[Step]| branch.windows(2).any(|two| two == [Step::Char('.'), Step::Char('.')]);
        match <[Vec<Step>; 1]>::try_from(branches) {
            // `{1..3}` is a range, which is not known here.
            Ok([only]) if is_range(&only) => return None,
            Ok([only]) => {
                steps.push(Step::Char('{'));
                steps.extend(only);
                steps.push(Step::Char('}'));
            }
            Err(branches) => steps.push(Step::Either(branches)),
        }
        Some(())
    }
}
