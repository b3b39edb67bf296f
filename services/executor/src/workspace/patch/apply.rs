//! What an update makes of a text.

use super::parse::Hunk;

impl Hunk {
    /// Puts the new lines where the old ones stand for the first time, to the letter. `None` if they stand nowhere.
    pub(crate) fn apply(&self, text: &str) -> Option<String> {
        let ends = text.is_empty() || text.ends_with('\n');
        let body = text.strip_suffix('\n').unwrap_or(text);
        let lines: Vec<&str> = if text.is_empty() { Vec::new() } else { body.split('\n').collect() };
        let at = self.find(&lines)?;
        let new = self.new.iter().map(String::as_str);
        let after = lines[at + self.old.len()..].iter().copied();
        let lines: Vec<_> = lines[..at].iter().copied().chain(new).chain(after).collect();
        let end = if ends && !lines.is_empty() { "\n" } else { "" };
        Some(lines.join("\n") + end)
    }

    fn find(&self, lines: &[&str]) -> Option<usize> {
        if self.old.is_empty() {
            return Some(0);
        }
        lines
            .windows(self.old.len())
            .position(|window| window.iter().zip(&self.old).all(|(own, old)| own == old))
    }
}
