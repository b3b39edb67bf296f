//! `{{ env.NAME }}` in the texts of the model list.

use serde_json::Value;

/// A variable that is not set.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missing(pub(super) String);

/// Fills in the environment in every text, at any depth.
pub(super) fn fill(value: &mut Value, env: &dyn Fn(&str) -> Option<String>) -> Result<(), Missing> {
    match value {
        Value::String(text) => *text = filled(text, env)?,
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill(item, env))?,
        Value::Object(members) => members.values_mut().try_for_each(|member| fill(member, env))?,
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

fn filled(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, Missing> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, name, after)) = placeholder(rest) {
        out.push_str(before);
        out.push_str(&env(name).ok_or_else(|| Missing(name.to_owned()))?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// The first placeholder: what is before it, the name, what is after it. Other braces are plain text.
fn placeholder(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices("{{").find_map(|(at, _)| {
        let (inside, after) = text[at + 2..].split_once("}}")?;
        let name = inside.trim().strip_prefix("env.")?;
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        (plain && !name.is_empty()).then_some((&text[..at], name, after))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_filled_at_any_depth() {
        let env = |name: &str| (name == "A").then(|| "{{ env.B }}".to_owned());
        let mut value = json!({"x": ["{{ env.A }}-{{env.A}}", 1], "y": {"z": "{{ other }} {{ }} {{"}});
        fill(&mut value, &env).unwrap();
        let expected = json!({"x": ["{{ env.B }}-{{ env.B }}", 1], "y": {"z": "{{ other }} {{ }} {{"}});
        assert_eq!(value, expected);
        assert_eq!(fill(&mut json!(["{{ env.C }}"]), &env), Err(Missing("C".into())));
    }
}
