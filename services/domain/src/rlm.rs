//! Agents that work by writing code, over an input that they see only through it.

use std::time::Duration;

/// How such an agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rlm {
    /// How many agents stand above it.
    pub depth: u32,
    /// The deepest that one may stand. A question of its code is one call of the model; of code above, it is an agent.
    pub max_depth: u32,
    /// How often it may run code before it must answer.
    pub iterations: u32,
    /// How often models may be asked in the whole run.
    pub calls: u32,
}

impl Rlm {
    /// How an agent works that the code of this one asks; `None` if it may ask none.
    pub fn below(self) -> Option<Self> {
        let depth = self.depth.saturating_add(1);
        (depth <= self.max_depth).then_some(Self { depth, ..self })
    }
}

/// What came of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeOutput {
    /// What it printed, as far as the model sees it.
    pub stdout: String,
    /// What ended it, unless it came to its end.
    pub error: Option<String>,
    /// The final answer, if it gave one.
    pub answer: Option<String>,
    /// Whether it printed more.
    pub truncated: bool,
    /// How long it took, if it ran.
    pub elapsed: Option<Duration>,
}

impl CodeOutput {
    /// Code that did not run, or whose end is not known.
    pub fn failed(error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::default() }
    }
}

/// The code of a message that calls no tool: all of its blocks of JavaScript.
pub(crate) fn fenced_code(text: &str) -> Option<String> {
    let mut blocks = Vec::new();
    let mut block: Option<Vec<&str>> = None;
    for line in text.lines() {
        let fence = line.trim();
        block = match block.take() {
            None => matches!(fence, "```js" | "```javascript" | "```repl").then(Vec::new),
            Some(lines) if fence == "```" => {
                blocks.push(lines.join("\n"));
                None
            }
            Some(mut lines) => {
                lines.push(line);
                Some(lines)
            }
        };
    }
    (!blocks.is_empty()).then(|| blocks.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_in_its_fences() {
        for (text, code) in [
            ("Look:\n```js\nprint(1)\n```\nand\n```javascript\nprint(2)\n```", Some("print(1)\nprint(2)")),
            ("```json\n{}\n```", None),
            ("```js\nunfinished", None),
            ("The answer is 4.", None),
        ] {
            assert_eq!(fenced_code(text).as_deref(), code, "{text}");
        }
    }

    #[test]
    fn agents_ask_agents_down_to_a_depth() {
        let top = Rlm { depth: 0, max_depth: 1, iterations: 10, calls: 100 };
        assert_eq!(top.below(), Some(Rlm { depth: 1, ..top }));
        assert_eq!(top.below().and_then(Rlm::below), None);
        assert_eq!(Rlm { max_depth: 0, ..top }.below(), None);
    }
}
