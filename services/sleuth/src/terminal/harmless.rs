//! Text from outside, made harmless: no escape sequence moves the cursor, hides a command or reverses text.

/// Control characters but newline and tab, and characters that reorder or hide text, become visible marks.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|character| if is_harmful(character) { '\u{fffd}' } else { character }).collect()
}

fn is_harmful(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        // Direction overrides and isolates, zero-width characters, the byte order mark, tags.
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => true,
        '\u{e0000}'..='\u{e007f}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_steer_a_terminal() {
        for hostile in ["\u{1b}[2J", "\u{9b}31m", "a\rb", "\u{8}", "\u{202e}gpj", "\u{200b}", "\u{7}"] {
            let shown = harmless(hostile);
            assert!(!shown.chars().any(is_harmful), "{hostile:?}");
            assert!(shown.contains('\u{fffd}'), "{hostile:?}");
        }
        assert_eq!(harmless("plain\n\täöü €😀"), "plain\n\täöü €😀");
    }
}
