//! The template language of YAML toolsets: `{{ name }}`, `{{ name | default("x") }}`, `{{ env.NAME }}`,
//! `{{ request_context.headers['NAME'] }}`, `{% if name %}`, `{% if not name %}`, `{% else %}`, `{% endif %}` and `{% raw %}`. What is none of these is an
//! error.

use std::collections::BTreeSet;

/// A template that was understood.
#[derive(Debug)]
pub(super) struct Template {
    parts: Vec<Part>,
    /// What its places stand for, each once.
    pub(super) slots: Vec<Slot>,
    /// Parameters that conditions ask for, each once.
    pub(super) conditions: Vec<String>,
}

/// What a place stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// A value that the model gives.
    Parameter { name: String, default: Option<String> },
    /// A variable of the executor's environment.
    Environment(String),
    /// A header of the request of whoever asks.
    Header(String),
}

#[derive(Debug)]
enum Part {
    Text(String),
    Slot(usize),
    /// Shows the first parts if the condition holds, else the others.
    If {
        condition: usize,
        holds: bool,
        then: Vec<Part>,
        otherwise: Vec<Part>,
    },
}

/// How a list of parts ended.
#[derive(PartialEq, Eq)]
enum End {
    Text,
    Else,
    Closed,
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut template = Self { parts: Vec::new(), slots: Vec::new(), conditions: Vec::new() };
        let mut rest = text;
        let (parts, end) = template.parts(&mut rest, 0)?;
        if end != End::Text {
            return Err("`{% else %}` or `{% endif %}` without `{% if %}`".to_owned());
        }
        template.parts = parts;
        Ok(template)
    }

    /// The text, with `show` for each slot and the conditions as `is_set` says, by their positions.
    pub(super) fn render(
        &self,
        is_set: impl Fn(usize) -> bool,
        mut show: impl FnMut(usize) -> String,
    ) -> String {
        let mut text = String::new();
        render(&self.parts, &is_set, &mut show, &mut text);
        text
    }

    /// Names of the parameters in the order of their first use, and whether each must be given.
    pub(super) fn parameters(&self) -> Vec<(String, bool)> {
        let mut seen = BTreeSet::new();
        let slots = self.slots.iter().filter_map(|slot| match slot {
            Slot::Parameter { name, default } => Some((name, default.is_none())),
            Slot::Environment(_) | Slot::Header(_) => None,
        });
        let conditions = self.conditions.iter().map(|name| (name, false));
        slots
            .chain(conditions)
            .filter(|(name, _)| seen.insert((*name).clone()))
            .map(|(name, required)| (name.clone(), required && !self.conditions.contains(name)))
            .collect()
    }

    fn parts(&mut self, rest: &mut &str, depth: usize) -> Result<(Vec<Part>, End), String> {
        if depth > 8 {
            return Err("conditions are nested too deeply".to_owned());
        }
        let mut parts = Vec::new();
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            let opening = from.get(..2).unwrap_or_default();
            if opening == "{#" && !before.ends_with('$') {
                return Err("comments (`{# #}`) are not supported".to_owned());
            }
            if !matches!(opening, "{{" | "{%") {
                parts.push(Part::Text(format!("{before}{{")));
                *rest = &from[1..];
                continue;
            }
            parts.push(Part::Text(before.to_owned()));
            let closing = if opening == "{{" { "}}" } else { "%}" };
            let (inner, after) =
                from[2..].split_once(closing).ok_or_else(|| format!("`{opening}` without `{closing}`"))?;
            *rest = after;
            let inner = inner.trim();
            if opening == "{{" {
                let slot = slot(inner)?;
                parts.push(Part::Slot(position(&mut self.slots, slot)));
                continue;
            }
            match inner {
                "else" => return Ok((parts, End::Else)),
                "endif" => return Ok((parts, End::Closed)),
                "raw" => {
                    let (raw, after) =
                        after.split_once("{% endraw %}").ok_or("`{% raw %}` without its end")?;
                    parts.push(Part::Text(raw.to_owned()));
                    *rest = after;
                }
                _ => parts.push(self.condition(inner, rest, depth)?),
            }
        }
        parts.push(Part::Text(std::mem::take(rest).to_owned()));
        Ok((parts, End::Text))
    }

    fn condition(&mut self, inner: &str, rest: &mut &str, depth: usize) -> Result<Part, String> {
        let unknown = || format!("`{{% {inner} %}}` is not supported");
        let asked = inner.strip_prefix("if ").ok_or_else(unknown)?.trim();
        let (name, holds) = asked.strip_prefix("not ").map_or((asked, true), |name| (name.trim(), false));
        if !is_name(name) {
            return Err(unknown());
        }
        let condition = position(&mut self.conditions, name.to_owned());
        let open = || "`{% if %}` without `{% endif %}`".to_owned();
        let (then, end) = self.parts(rest, depth + 1)?;
        let otherwise = match end {
            End::Closed => Vec::new(),
            End::Else => {
                let (otherwise, end) = self.parts(rest, depth + 1)?;
                if end != End::Closed {
                    return Err(open());
                }
                otherwise
            }
            End::Text => return Err(open()),
        };
        Ok(Part::If { condition, holds, then, otherwise })
    }
}

fn render(
    parts: &[Part],
    is_set: &impl Fn(usize) -> bool,
    show: &mut impl FnMut(usize) -> String,
    text: &mut String,
) {
    for part in parts {
        match part {
            Part::Text(own) => text.push_str(own),
            Part::Slot(slot) => text.push_str(&show(*slot)),
            Part::If { condition, holds, then, otherwise } => {
                let shown = if is_set(*condition) == *holds { then } else { otherwise };
                render(shown, is_set, show, text);
            }
        }
    }
}

fn position<T: PartialEq>(known: &mut Vec<T>, one: T) -> usize {
    known.iter().position(|own| *own == one).unwrap_or_else(|| {
        known.push(one);
        known.len() - 1
    })
}

fn slot(inner: &str) -> Result<Slot, String> {
    let unknown = || format!("`{{{{ {inner} }}}}` is not supported");
    let (name, default) = match inner.split_once('|') {
        Some((name, filter)) => (name.trim(), Some(default(filter.trim()).ok_or_else(unknown)?)),
        None => (inner, None),
    };
    if let (Some(header), None) = (header(name), &default) {
        return Ok(Slot::Header(header.to_owned()));
    }
    match (name.strip_prefix("env."), default) {
        (Some(variable), None) if is_name(variable) => Ok(Slot::Environment(variable.to_owned())),
        (None, default) if is_name(name) => Ok(Slot::Parameter { name: name.to_owned(), default }),
        (Some(_) | None, _) => Err(unknown()),
    }
}

/// The name in `request_context.headers['name']`.
fn header(place: &str) -> Option<&str> {
    let quoted = place.strip_prefix("request_context.headers[")?.strip_suffix(']')?;
    let name = ['"', '\''].iter().find_map(|quote| quoted.strip_prefix(*quote)?.strip_suffix(*quote))?;
    name.parse::<http::HeaderName>().is_ok().then_some(name)
}

/// The text in `default("text")`.
fn default(filter: &str) -> Option<String> {
    let argument = filter.strip_prefix("default")?.trim().strip_prefix('(')?.strip_suffix(')')?.trim();
    let quoted = ['"', '\''].iter().find_map(|quote| argument.strip_prefix(*quote)?.strip_suffix(*quote));
    let text = quoted.or_else(|| argument.parse::<i64>().is_ok().then_some(argument))?;
    (!text.contains(['"', '\'', '\\'])).then(|| text.to_owned())
}

pub(super) fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_language_is_an_error() {
        for (text, error) in [
            ("{{ a", "`{{` without `}}`"),
            ("{{ a.b }}", "`{{ a.b }}` is not supported"),
            ("{{ request_context.headers['a b'] }}", "is not supported"),
            ("{{ request_context.headers.x }}", "is not supported"),
            ("{{ a | upper }}", "is not supported"),
            ("{% for a in b %}", "`{% for a in b %}` is not supported"),
            ("{% if a %}x", "`{% if %}` without `{% endif %}`"),
            ("x{% endif %}", "without `{% if %}`"),
            ("{# note #}", "comments"),
        ] {
            let found = Template::parse(text).unwrap_err();
            assert!(found.contains(error), "{text}: {found}");
        }
    }

    #[test]
    fn conditions_choose_and_make_parameters_optional() {
        let template =
            Template::parse("get {{ kind }}{% if ns %} -n {{ ns }}{% else %} -A{% endif %}").unwrap();
        let show = |slot: usize| ["pod", "shop"][slot].to_owned();
        assert_eq!(template.render(|_| true, show), "get pod -n shop");
        assert_eq!(template.render(|_| false, show), "get pod -A");
        assert_eq!(template.parameters(), [("kind".to_owned(), true), ("ns".to_owned(), false)]);
    }

    #[test]
    fn other_braces_stay() {
        for text in ["awk '{print $1}'", "${#list}", "a{b,c}", "{"] {
            assert_eq!(Template::parse(text).unwrap().render(|_| false, |_| String::new()), text);
        }
        let raw = Template::parse("{% raw %}{{ .items }}{% endraw %}").unwrap();
        assert_eq!(raw.render(|_| false, |_| String::new()), "{{ .items }}");
    }
}
