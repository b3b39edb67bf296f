//! A runbook as a text: YAML front matter with a name and a description, and then what to do.
//!
//! The format is that of agent skills, of which other members of the front matter are ignored.

use serde::Deserialize;

use super::Runbook;

const MOST_ID: usize = 128;
const MOST_DESCRIPTION: usize = 1024;

#[derive(Deserialize)]
struct FrontMatter {
    name: String,
    description: String,
}

/// What is wrong with a text.
#[derive(Debug, thiserror::Error)]
pub(super) enum Malformed {
    #[error("it does not begin with front matter: a line `---`, `name:` and `description:`, a line `---`")]
    NoFrontMatter,
    #[error("its front matter: {0}")]
    FrontMatter(#[from] serde_saphyr::Error),
    #[error(
        "the name must have 1 to {MOST_ID} characters, none of them a space, a backtick or a control character"
    )]
    Id,
    #[error("the description must have 1 to {MOST_DESCRIPTION} characters")]
    Description,
    #[error("it has no text")]
    NoText,
}

/// Reads a text with front matter.
pub(super) fn parse(file: &str) -> Result<(String, Runbook), Malformed> {
    let (head, text) = split(file.trim_start_matches('\u{feff}')).ok_or(Malformed::NoFrontMatter)?;
    let FrontMatter { name, description } = serde_saphyr::from_str(head)?;
    runbook(name, &description, text)
}

/// A runbook of these parts.
pub(super) fn runbook(id: String, description: &str, text: &str) -> Result<(String, Runbook), Malformed> {
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.trim().to_owned();
    if !(1..=MOST_ID).contains(&id.chars().count())
        || id.contains(|c: char| c.is_whitespace() || c.is_control() || c == '`')
    {
        return Err(Malformed::Id);
    }
    if !(1..=MOST_DESCRIPTION).contains(&description.chars().count()) {
        return Err(Malformed::Description);
    }
    if text.is_empty() {
        return Err(Malformed::NoText);
    }
    Ok((id, Runbook { description, text }))
}

/// Front matter and the rest, between and after lines of three dashes.
fn split(file: &str) -> Option<(&str, &str)> {
    let mut lines = file.split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == "---")?;
    let mut end = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            return Some((file.get(first.len()..end)?, file.get(end + line.len()..)?));
        }
        end += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_told_from_text() {
        for file in [
            "---\nname: dns\ndescription: Names do\n  not resolve.\n---\nLook.\n---\nThen act.\n",
            "\u{feff}---\r\nname: dns\r\nlicense: MIT\r\ndescription: \"Names do not resolve.\"\r\n---\r\n\r\nLook.\n---\nThen act.",
        ] {
            let (id, runbook) = parse(file).unwrap();
            assert_eq!(id, "dns");
            assert_eq!(runbook.description, "Names do not resolve.");
            assert_eq!(runbook.text, "Look.\n---\nThen act.");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let long = "x".repeat(2000);
        for (file, why) in [
            ("", "does not begin with front matter"),
            ("# DNS\n", "does not begin with front matter"),
            ("---\nname: dns\ndescription: d\n", "does not begin with front matter"),
            ("---\nname: dns\n---\ntext", "description"),
            ("---\nname: [dns]\ndescription: d\n---\ntext", "front matter"),
            ("---\nname: a b\ndescription: d\n---\ntext", "the name"),
            ("---\nname: ''\ndescription: d\n---\ntext", "the name"),
            ("---\nname: dns\ndescription: ' '\n---\ntext", "the description"),
            (&format!("---\nname: dns\ndescription: {long}\n---\ntext"), "the description"),
            ("---\nname: dns\ndescription: d\n---\n \n", "no text"),
        ] {
            let error = parse(file).unwrap_err().to_string();
            assert!(error.contains(why), "{file:?}: {error}");
        }
    }
}
