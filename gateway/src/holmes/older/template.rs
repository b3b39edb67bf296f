//! Prompts by name, or as a text with placeholders. Nothing is read from files, and nothing is run.

use http::StatusCode;

use crate::problem::Problem;

/// The server's own prompts.
const BUILTIN: [(&str, &str); 5] = [
    ("generic_ask", include_str!("../../../prompts/generic_ask.md")),
    (ISSUE_CHAT, include_str!("../../../prompts/generic_ask_for_issue_conversation.md")),
    (INVESTIGATION, include_str!("../../../prompts/generic_investigation.md")),
    (WORKLOAD_CHECK, include_str!("../../../prompts/kubernetes_workload_ask.md")),
    (WORKLOAD_CHAT, include_str!("../../../prompts/kubernetes_workload_chat.md")),
];

pub(super) const INVESTIGATION: &str = "generic_investigation";
pub(super) const ISSUE_CHAT: &str = "generic_ask_for_issue_conversation";
pub(super) const WORKLOAD_CHECK: &str = "kubernetes_workload_ask";
pub(super) const WORKLOAD_CHAT: &str = "kubernetes_workload_chat";

/// Bytes of a rendered prompt.
const LONGEST: usize = 1 << 20;

/// Why a template cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum Refused {
    #[error("files are not read; send the text of the template, or builtin://NAME")]
    File,
    #[error("there is no builtin template `{name}`; there are: {known}")]
    Unknown { name: String, known: String },
    #[error("only placeholders such as {{{{ title }}}} are filled in; statements and comments are not")]
    Statement,
    #[error("a placeholder is not closed")]
    Open,
    #[error("nothing is named `{name}` here; there are: {known}")]
    NoValue { name: String, known: String },
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        Self::new(StatusCode::BAD_REQUEST, format!("prompt_template: {refused}"))
    }
}

/// What placeholders stand for, by name.
pub(super) type Values<'a> = [(&'static str, &'a str)];

/// The prompt that a client asks for, or else the builtin one of this name.
pub(super) fn resolve(asked: Option<&str>, default: &str, values: &Values<'_>) -> Result<String, Refused> {
    match asked.map(|asked| asked.split_once("://").unwrap_or(("", asked))) {
        None => render(builtin(default)?, values),
        Some(("builtin", name)) => render(builtin(name)?, values),
        Some((scheme, _)) if scheme.trim().eq_ignore_ascii_case("file") => Err(Refused::File),
        Some(_) => render(asked.unwrap_or_default(), values),
    }
}

/// With or without the original's extension.
fn builtin(name: &str) -> Result<&'static str, Refused> {
    let bare = name.strip_suffix(".jinja2").unwrap_or(name);
    BUILTIN.iter().find(|(known, _)| *known == bare).map(|(_, text)| *text).ok_or_else(|| Refused::Unknown {
        name: name.to_owned(),
        known: BUILTIN.map(|(name, _)| name).join(", "),
    })
}

fn render(template: &str, values: &Values<'_>) -> Result<String, Refused> {
    if template.contains("{%") || template.contains("{#") {
        return Err(Refused::Statement);
    }
    let mut prompt = String::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").ok_or(Refused::Open)?;
        let name = name.trim_matches('-').trim();
        let value = values.iter().find(|(known, _)| *known == name).ok_or_else(|| Refused::NoValue {
            name: name.to_owned(),
            known: values.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        })?;
        rest = after;
        prompt.push_str(text);
        prompt.push_str(value.1);
        if prompt.len() > LONGEST {
            return Err(Refused::TooLong);
        }
    }
    prompt.push_str(rest);
    if prompt.len() > LONGEST {
        return Err(Refused::TooLong);
    }
    Ok(prompt.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: &Values<'_> = &[("title", "Pod {{ down }}"), ("source", "prometheus"), ("sections", "- A")];

    fn fill(template: &str) -> Result<String, Refused> {
        resolve(Some(template), INVESTIGATION, VALUES)
    }

    #[test]
    fn placeholders_are_filled_in_once() {
        assert_eq!(
            fill("{{title}}: {{- source -}}! {{ sections }}").unwrap(),
            "Pod {{ down }}: prometheus! - A"
        );
        assert_eq!(fill("no placeholder").unwrap(), "no placeholder");
    }

    #[test]
    fn builtin_templates_have_a_name() {
        let default = resolve(None, INVESTIGATION, VALUES).unwrap();
        assert!(default.starts_with("# This investigation"), "{default}");
        for name in ["builtin://generic_investigation", "builtin://generic_investigation.jinja2"] {
            assert_eq!(fill(name).unwrap(), default);
        }
        for (name, _) in BUILTIN {
            assert!(!fill(&format!("builtin://{name}")).unwrap().is_empty(), "{name}");
        }
        assert!(matches!(fill("builtin://../Cargo.toml"), Err(Refused::Unknown { .. })));
    }

    #[test]
    fn nothing_else_is_done() {
        for file in ["file:///etc/passwd", "FILE://x", " file://x"] {
            assert_eq!(fill(file), Err(Refused::File), "{file}");
        }
        for statement in ["{% for i in range(9) %}", "{# hidden #}"] {
            assert_eq!(fill(statement), Err(Refused::Statement), "{statement}");
        }
        assert_eq!(fill("{{ title"), Err(Refused::Open));
        assert!(matches!(fill("{{ title * 9 }}"), Err(Refused::NoValue { .. })));
        let long = "x".repeat(1000);
        let bomb = "{{ title }}".repeat(2000);
        assert_eq!(resolve(Some(&bomb), INVESTIGATION, &[("title", &long)]), Err(Refused::TooLong));
    }
}
