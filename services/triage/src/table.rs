//! Tables as kubectl prints them.

use std::rc::Rc;

/// Where each column starts, in characters, and its name.
type Columns<'a> = Rc<[(usize, &'a str)]>;

/// A row of a table, with where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row<'a> {
    /// The command that printed it.
    pub(crate) command: &'a str,
    /// The line of column names above it.
    pub(crate) header: &'a str,
    /// The row itself.
    pub(crate) line: &'a str,
    columns: Columns<'a>,
}

impl<'a> Row<'a> {
    /// The text in a column; `None` if there is no such column or nothing in it.
    pub(crate) fn cell(&self, column: &str) -> Option<&'a str> {
        let index = self.columns.iter().position(|(_, name)| *name == column)?;
        let start = byte_at(self.line, self.columns.get(index)?.0);
        let end = self.columns.get(index + 1).map_or(self.line.len(), |(at, _)| byte_at(self.line, *at));
        let text = self.line.get(start..end)?.trim();
        (!text.is_empty() && text != "<none>").then_some(text)
    }
}

/// All rows of all tables in an output. Lines that belong to no table are left out.
pub(crate) fn rows<'a>(command: &'a str, output: &'a str) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let mut head: Option<(&'a str, Columns<'a>)> = None;
    for line in output.lines() {
        if is_header(line) {
            head = Some((line, columns(line).into()));
        } else if let Some((header, columns)) = &head
            && fits(line, columns)
        {
            rows.push(Row { command, header, line, columns: columns.clone() });
        }
    }
    rows
}

fn is_header(line: &str) -> bool {
    ["NAME ", "NAMESPACE ", "LAST SEEN "].iter().any(|start| line.starts_with(start))
        && line.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || " -()_/%".contains(c))
}

/// Where each column starts, in characters. Columns are two or more spaces apart.
fn columns(header: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = header.get(at..) {
        let start = at + (rest.len() - rest.trim_start().len());
        let Some(rest) = header.get(start..).filter(|rest| !rest.is_empty()) else { break };
        let end = start + rest.find("  ").unwrap_or(rest.len());
        found.extend(header.get(start..end).map(|name| (start, name.trim_end())));
        at = end;
    }
    found
}

/// A row has text in its first column and a gap before each other one; what does not is no row of this table.
fn fits(line: &str, columns: &[(usize, &str)]) -> bool {
    let gap = |at: usize| line.get(..byte_at(line, at)).is_some_and(|before| before.ends_with(' '));
    let length = line.chars().count();
    !line.starts_with([' ', '['])
        && columns.iter().skip(1).all(|(at, _)| *at >= length || gap(*at))
        && length > 0
        && columns.get(1).is_none_or(|(at, _)| length > *at)
}

fn byte_at(line: &str, chars: usize) -> usize {
    line.char_indices().nth(chars).map_or(line.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PODS: &str = "\
NAMESPACE   NAME        READY   STATUS             RESTARTS      AGE   NOMINATED NODE
shop        web-1       1/1     Running            0             3d    <none>
Error from server (Forbidden): x
shop        cart-2      0/1     CrashLoopBackOff   9 (40s ago)   26m
[... 900 bytes omitted ...]
ou
";

    #[test]
    fn cells_are_read_by_the_header() {
        let rows = rows("c", PODS);
        let names: Vec<_> = rows.iter().filter_map(|row| row.cell("NAME")).collect();
        assert_eq!(names, ["web-1", "cart-2"]);
        assert_eq!(rows.last().and_then(|row| row.cell("RESTARTS")), Some("9 (40s ago)"));
        assert_eq!(rows.first().and_then(|row| row.cell("NOMINATED NODE")), None);
    }

    #[test]
    fn several_tables_follow_each_other() {
        let text = "NAME                READY\ndeployment.apps/a   1/1\n\nNAME               DESIRED   READY\ndaemonset.apps/b   2         2\n";
        let rows = rows("c", text);
        assert_eq!(rows.first().and_then(|row| row.cell("READY")), Some("1/1"));
        assert_eq!(rows.last().and_then(|row| row.cell("DESIRED")), Some("2"));
    }
}
