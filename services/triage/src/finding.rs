//! What rules conclude: findings, each with the evidence for it.

use crate::{evidence::Fetched, name::Object, table::Row};

/// How bad it is; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// Something does not work at all.
    Outage,
    /// Something works in part.
    Degraded,
    /// Something should be known.
    Notice,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    pub(crate) about: Object,
    /// Everything that this finding explains; a later finding about one of them says nothing new.
    pub(crate) covers: Vec<Object>,
    /// What it may be a consequence of.
    pub(crate) blames: Vec<Object>,
    /// What is wrong with it: the sentence after its name, without a full stop.
    pub(crate) what: String,
    pub(crate) cause: String,
    pub(crate) quotes: Vec<Quote>,
    pub(crate) steps: Vec<Step>,
}

impl Finding {
    pub(crate) fn new(severity: Severity, about: Object, what: impl Into<String>) -> Self {
        Self {
            severity,
            covers: vec![about.clone()],
            about,
            blames: Vec::new(),
            what: what.into(),
            cause: String::new(),
            quotes: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// The whole sentence, without a full stop.
    pub(crate) fn sentence(&self) -> String {
        format!("{} {}", self.about, self.what)
    }

    #[must_use]
    pub(crate) fn covering(mut self, objects: impl IntoIterator<Item = Object>) -> Self {
        self.covers.extend(objects);
        self
    }

    #[must_use]
    pub(crate) fn blaming(mut self, objects: impl IntoIterator<Item = Object>) -> Self {
        self.blames.extend(objects);
        self
    }

    #[must_use]
    pub(crate) fn because(mut self, cause: impl Into<String>) -> Self {
        self.cause = cause.into();
        self
    }

    #[must_use]
    pub(crate) fn quoting(mut self, quotes: impl IntoIterator<Item = Quote>) -> Self {
        self.quotes.extend(quotes.into_iter().filter(|quote| !quote.lines.is_empty()));
        self
    }

    /// Like [`Finding::quoting`], in front of what was quoted before.
    #[must_use]
    pub(crate) fn quoting_before(mut self, quotes: impl IntoIterator<Item = Quote>) -> Self {
        let later = std::mem::take(&mut self.quotes);
        self.quoting(quotes).quoting(later)
    }

    #[must_use]
    pub(crate) fn next(mut self, text: impl Into<String>, command: impl Into<String>) -> Self {
        self.steps.push(Step { text: text.into(), command: command.into() });
        self
    }
}

/// Lines of output, and the command that printed them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quote {
    pub(crate) command: String,
    pub(crate) lines: Vec<String>,
}

impl Quote {
    /// Lines of an output.
    pub(crate) fn of<'l>(fetched: &Fetched, lines: impl IntoIterator<Item = &'l str>) -> Self {
        let lines = lines.into_iter().map(str::to_owned).collect();
        Self { command: fetched.command.clone(), lines }
    }

    /// These lines and those of another quote of the same output.
    #[must_use]
    pub(crate) fn and(mut self, other: Option<Self>) -> Self {
        let same = other.filter(|other| other.command == self.command);
        self.lines.extend(same.into_iter().flat_map(|other| other.lines));
        self
    }

    /// Rows of one table, under its header.
    pub(crate) fn rows<'r>(rows: impl IntoIterator<Item = &'r Row<'r>>) -> Option<Self> {
        let mut rows = rows.into_iter();
        let first = rows.next()?;
        let same = rows.filter(|row| row.command == first.command && row.header == first.header);
        let lines = [first.header, first.line].into_iter().chain(same.map(|row| row.line));
        Some(Self { command: first.command.to_owned(), lines: lines.map(str::to_owned).collect() })
    }
}

/// Something to do next. Commands are for a person to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) text: String,
    pub(crate) command: String,
}
