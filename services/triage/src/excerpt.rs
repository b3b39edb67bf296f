//! Finds blocks in YAML as kubectl prints it, so that they can be quoted word for word.

/// The lines of a mapping's entry `key`, the key's line included.
pub(crate) fn entry<'l, 'a>(lines: &'l [&'a str], key: &str) -> Option<&'l [&'a str]> {
    let level = lines.iter().filter(|line| !line.is_empty()).map(|line| indent(line)).min()?;
    let start = lines.iter().position(|line| {
        indent(line) == level
            && content(line).strip_prefix(key).is_some_and(|rest| rest == ":" || rest.starts_with(": "))
    })?;
    let rest = lines.get(start + 1..)?;
    let own = |line: &&str| {
        let at = raw_indent(line);
        at > level || (at == level && line.trim_start().starts_with("- "))
    };
    let length = rest.iter().take_while(|line| line.is_empty() || own(line)).count();
    lines.get(start..=start + length)
}

/// The item of the sequence under `block`'s first line whose `name` is this.
pub(crate) fn item<'l, 'a>(block: &'l [&'a str], name: &str) -> Option<&'l [&'a str]> {
    let body = block.get(1..)?;
    let level = raw_indent(body.first()?);
    let starts: Vec<usize> = (0..body.len())
        .filter(|at| {
            body.get(*at).is_some_and(|line| raw_indent(line) == level && line.trim_start().starts_with("- "))
        })
        .collect();
    starts.iter().enumerate().find_map(|(index, start)| {
        let item = body.get(*start..starts.get(index + 1).copied().unwrap_or(body.len()))?;
        let named = entry(item, "name")?.first()?;
        (content(named).strip_prefix("name: ")?.trim_matches(['"', '\'']) == name).then_some(item)
    })
}

/// Spaces and a sequence's dash before the content.
fn indent(line: &str) -> usize {
    line.len() - content(line).len()
}

fn raw_indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn content(line: &str) -> &str {
    line.trim_start().trim_start_matches("- ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = "\
metadata:
  name: web
status:
  containerStatuses:
  - lastState: {}
    name: side
    ready: true
  - lastState:
      terminated:
        exitCode: 137
        message: |
          name: side
    name: web
    ready: false
  phase: Running";

    #[test]
    fn a_block_is_found_by_its_path() {
        let lines: Vec<_> = POD.lines().collect();
        let statuses =
            entry(&lines, "status").and_then(|status| entry(status.get(1..)?, "containerStatuses"));
        let web = statuses.and_then(|statuses| item(statuses, "web")).expect("the container");
        assert_eq!(web.last(), Some(&"    ready: false"));
        assert_eq!(entry(web, "lastState").map(<[_]>::len), Some(5));
        assert_eq!(entry(web, "nothing"), None);
    }
}
