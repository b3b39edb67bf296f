//! Answers: rendered for a terminal, left as they are for everything else.

use std::io::{IsTerminal as _, Write as _};

use termimad::MadSkin;

use super::harmless;

/// Prints an answer on standard output.
pub(crate) fn print_answer(markdown: &str) -> anyhow::Result<()> {
    let markdown = harmless(markdown);
    let mut out = std::io::stdout();
    if out.is_terminal() {
        write!(out, "{}", MadSkin::default().term_text(&markdown))?;
    } else {
        writeln!(out, "{}", markdown.trim_end())?;
    }
    Ok(out.flush()?)
}
