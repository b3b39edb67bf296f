//! What models write: JSON in a fence, and text under headings.

use std::collections::HashMap;

/// A heading.
#[derive(Debug, PartialEq)]
pub(super) struct Heading<'t> {
    pub(super) title: &'t str,
    /// From 1, the highest.
    pub(super) level: usize,
    /// Where its line begins.
    start: usize,
    /// Where the text under it begins.
    end: usize,
}

/// The inside of a text that is one fenced block; any other text as it is.
pub(super) fn without_fence(text: &str) -> &str {
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((_, inner)) => inner.trim(),
        None => trimmed,
    }
}

/// A title without its decoration.
pub(super) fn bare(title: &str) -> &str {
    title.trim_matches([' ', '\t', '#', '*', '_', ':'])
}

/// The headings of a text, marked with `#` or underlined; those in fenced blocks are none.
pub(super) fn headings(text: &str) -> Vec<Heading<'_>> {
    let mut found = Vec::new();
    let mut fence = None;
    // The lines before: where the last one begins, itself, and whether a blank one is before it.
    let mut before = (0, "", true);
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let content = line.trim_end();
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| content.trim_start().starts_with(mark)) {
            fence = match fence {
                None => Some(mark),
                Some(open) => Some(open).filter(|open| *open != mark),
            };
        } else if fence.is_none() {
            if let Some((level, title)) = marked(content) {
                found.push(Heading { title, level, start, end });
            } else if let (Some(level), (start, title, true)) = (underline(content), before)
                && is_prose(title)
            {
                found.push(Heading { title: bare(title), level, start, end });
            }
        }
        before = (start, content, before.1.is_empty());
        start = end;
    }
    found
}

fn marked(line: &str) -> Option<(usize, &str)> {
    let marks = line.trim_start_matches(' ');
    let title = marks.trim_start_matches('#');
    let level = marks.len() - title.len();
    let is_heading =
        line.len() - marks.len() <= 3 && (1..=6).contains(&level) && title.starts_with([' ', '\t']);
    is_heading.then(|| (level, bare(title))).filter(|(_, title)| !title.is_empty())
}

fn underline(line: &str) -> Option<usize> {
    let is_of = |mark: char| line.len() >= 3 && line.chars().all(|c| c == mark);
    if is_of('=') {
        Some(1)
    } else if is_of('-') {
        Some(2)
    } else {
        None
    }
}

/// Whether a line may be a title: no list, table or quote.
fn is_prose(line: &str) -> bool {
    !bare(line).is_empty() && !line.starts_with([' ', '\t', '-', '+', '>', '|', '`', '#'])
}

/// What stands under each of these headings, up to the next of them. Equal titles are one.
pub(super) fn under(text: &str, headings: &[&Heading<'_>]) -> Vec<(String, Option<String>)> {
    let mut found: Vec<(String, Option<String>)> = Vec::new();
    let mut places = HashMap::new();
    for (at, heading) in headings.iter().enumerate() {
        let end = headings.get(at + 1).map_or(text.len(), |next| next.start);
        let body = text.get(heading.end..end).unwrap_or_default().trim();
        let place = *places.entry(heading.title.to_lowercase()).or_insert(found.len());
        match found.get_mut(place) {
            None => found.push((heading.title.to_owned(), Some(body.to_owned()))),
            Some((_, Some(earlier))) if !earlier.is_empty() => *earlier = format!("{earlier}\n\n{body}"),
            Some((_, earlier)) => *earlier = Some(body.to_owned()),
        }
    }
    for (_, body) in &mut found {
        body.take_if(|body| body.is_empty());
    }
    found
}
