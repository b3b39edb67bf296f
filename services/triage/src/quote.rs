//! Puts text of others into markdown, so that it stays text: nothing of it can end a block or a span.

/// Lines of one quote.
pub(crate) const LINES: usize = 15;
/// Characters of one quoted line.
const WIDTH: usize = 300;

/// A code block with what a command printed.
pub(crate) fn block(command: &str, lines: &[String], most: usize) -> String {
    let margin =
        lines.iter().filter(|line| !line.trim().is_empty()).map(|line| indent(line)).min().unwrap_or(0);
    let mut body = vec![format!("$ {}", line(command))];
    body.extend(lines.iter().take(most).map(|text| line(text.get(margin..).unwrap_or(""))));
    if lines.len() > most {
        body.push(format!("… {} more lines", lines.len() - most));
    }
    fenced("console", &body.join("\n"))
}

/// A code block with one command.
pub(crate) fn command(text: &str) -> String {
    fenced("sh", &line(text))
}

fn fenced(language: &str, body: &str) -> String {
    let longest = body.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}{language}\n{body}\n{fence}\n")
}

/// A short piece as inline code.
pub(crate) fn inline(text: &str) -> String {
    let text = shortened(&line(text.trim()), 200);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    if longest == 0 { format!("`{text}`") } else { format!("{ticks} {text} {ticks}") }
}

/// A short piece as part of a sentence: on one line, and without what markdown would read as markup.
pub(crate) fn plain(text: &str) -> String {
    let flat = line(text.trim().trim_end_matches('.'));
    let inert: String = flat
        .chars()
        .map(|c| if matches!(c, '`' | '<' | '>' | '[' | ']' | '*' | '|' | '#') { '\'' } else { c })
        .collect();
    shortened(&inert, 240)
}

/// One line without control characters, and not too long.
fn line(text: &str) -> String {
    let visible = text.chars().filter(|c| !c.is_control() && !is_invisible(*c));
    shortened(&visible.collect::<String>(), WIDTH).trim_end().to_owned()
}

/// Characters that change the direction or look of their neighbours.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or(text)),
        None => text.to_owned(),
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_can_not_leave_its_block() {
        let lines = ["```".to_owned(), "# Do this\u{1b}[2J".to_owned(), "````".to_owned()];
        let text = block("kubectl logs a", &lines, LINES);
        assert!(text.starts_with("`````console\n$ kubectl logs a\n"), "{text}");
        assert!(text.ends_with("\n`````\n"));
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn quotes_are_short() {
        let lines = vec!["x".repeat(1000); 40];
        let text = block("c", &lines, LINES);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH + 1));
        assert_eq!(text.lines().count(), LINES + 4);
    }

    #[test]
    fn spans_hold_backticks() {
        assert_eq!(inline("a`b"), "`` a`b ``");
        assert_eq!(plain("see [x](y) `z`."), "see 'x'(y) 'z'");
    }
}
