//! The sections of an investigation's answer: asked for in the prompt, and found in JSON or in markdown.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::{
    markdown::{self, Heading},
    prompt,
};

/// What an answer is divided into, unless the client says otherwise: titles, and what belongs there.
const DEFAULT: [(&str, &str); 6] = [
    (
        "Alert Explanation",
        "One or two sentences: what the alert says, in words for somebody who does not know it.",
    ),
    ("Key Findings", "What was seen, each with the command or metric that showed it. No guesses."),
    (
        "Conclusions and Possible Root Causes",
        "What causes it, and how certain that is. Causes apart from what follows from them.",
    ),
    ("Next Steps", "What to do now, as exact commands where possible; the most likely remedy first."),
    ("App or Infra?", "One word, App or Infra, and one sentence why: who has to act."),
    ("External links", "Links that were found and help. Nothing, if there are none."),
];

/// The sections that an answer shall have: titles, and what belongs there.
#[derive(Debug)]
pub(super) struct Sections(Vec<(String, String)>);

/// The sections that an answer has.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found(Vec<(String, Option<String>)>);

impl Serialize for Found {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(title, text)| (title, text)))
    }
}

impl Sections {
    /// These, or the default ones if these are none.
    pub(super) fn or_default(asked: Vec<(String, String)>) -> Self {
        let default = || DEFAULT.map(|(title, what)| (title.to_owned(), what.to_owned())).into();
        Self(if asked.is_empty() { default() } else { asked })
    }

    /// Asks for them.
    pub(super) fn prompt(&self) -> String {
        format!(
            "# Sections of the answer\n\nThe answer is markdown under these headings of the first level, exactly as \
             they are written here and in this order. A section that does not apply is left out; nothing is made up \
             to fill one.\n\n{}",
            self.list()
        )
    }

    /// A list of them.
    pub(super) fn list(&self) -> String {
        prompt::list(self.0.iter().map(|(title, what)| format!("{title}: {what}")))
    }

    /// The answer as markdown, and its sections if it has any.
    pub(super) fn find(&self, answer: String) -> (String, Option<Found>) {
        if let Some(found) = self.in_json(markdown::without_fence(&answer)) {
            return (found.markdown(), Some(found));
        }
        let found = self.in_markdown(&answer);
        (answer, found)
    }

    fn in_json(&self, answer: &str) -> Option<Found> {
        let members: Map<String, Value> = serde_json::from_str(answer).ok()?;
        let given = members.into_iter().map(|(title, value)| (title, said(value)));
        self.arrange(given.collect())
    }

    fn in_markdown(&self, answer: &str) -> Option<Found> {
        let headings = markdown::headings(answer);
        let is_named = |heading: &&Heading<'_>| self.title(heading.title).is_some();
        // A model that takes no orders divides its answer in its own way.
        let level = headings.iter().filter(is_named).map(|heading| heading.level).min();
        let level = level.or(headings.iter().map(|heading| heading.level).min())?;
        let parts: Vec<_> =
            headings.iter().filter(|heading| heading.level <= level || is_named(heading)).collect();
        let parts = markdown::under(answer, &parts);
        if headings.iter().any(|heading| is_named(&heading)) {
            self.arrange(parts)
        } else {
            Some(Found(parts))
        }
    }

    /// What was asked for, in this order, and then the rest; `None` if nothing was asked for.
    fn arrange(&self, mut given: Vec<(String, Option<String>)>) -> Option<Found> {
        let mut asked = false;
        let mut found = Vec::new();
        for (title, _) in &self.0 {
            let place = given.iter().position(|(given, _)| is_same(given, title));
            asked |= place.is_some();
            found.push((title.clone(), place.and_then(|place| given.remove(place).1)));
        }
        found.extend(given);
        asked.then_some(Found(found))
    }

    fn title(&self, heading: &str) -> Option<&str> {
        self.0.iter().map(|(title, _)| title.as_str()).find(|title| is_same(title, heading))
    }
}

impl Found {
    /// Headings and what is under them.
    fn markdown(&self) -> String {
        let parts =
            self.0.iter().filter_map(|(title, text)| Some(format!("# {title}\n{}\n", text.as_ref()?)));
        parts.collect::<Vec<_>>().join("\n")
    }
}

fn is_same(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|title| markdown::bare(title).to_lowercase());
    one == other
}

/// What a model put where a text belongs.
fn said(value: Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text,
        Value::Array(items) => items.into_iter().filter_map(said).collect::<Vec<_>>().join("\n\n"),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    };
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
