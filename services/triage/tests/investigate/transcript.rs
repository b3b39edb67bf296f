//! Recorded investigations: what was asked, what must be in the answer, and what each command printed.
//!
//! ```text
//! # ask: what is wrong in namespace shop?
//! # now: 2026-11-22 00:50:00
//! # expect: text that the answer must hold
//! # never: text that it must not hold
//! $ kubectl get namespaces --request-timeout=10s
//! NAME   STATUS   AGE
//! ```
//!
//! A command that is not in it finds nothing (kubectl) or does not exist (others).

use std::{collections::BTreeMap, path::Path};

/// A recorded investigation.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(crate) ask: String,
    pub(crate) now: String,
    pub(crate) expect: Vec<String>,
    pub(crate) never: Vec<String>,
    pub(crate) outputs: BTreeMap<String, String>,
}

impl Recording {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("the recording is there");
        let mut recording = Self::default();
        let mut command = None::<String>;
        for line in text.lines() {
            let note = |name: &str| line.strip_prefix(&format!("# {name}: ")).filter(|_| command.is_none());
            if let Some(text) = note("ask") {
                recording.ask = text.to_owned();
            } else if let Some(text) = note("now") {
                recording.now = text.to_owned();
            } else if let Some(text) = note("expect") {
                recording.expect.push(text.to_owned());
            } else if let Some(text) = note("never") {
                recording.never.push(text.to_owned());
            } else if let Some(text) = line.strip_prefix("$ ") {
                recording.outputs.insert(text.to_owned(), String::new());
                command = Some(text.to_owned());
            } else if let Some(output) =
                command.as_ref().and_then(|command| recording.outputs.get_mut(command))
            {
                output.push_str(line);
                output.push('\n');
            }
        }
        recording
    }

    /// The question as the agent would put it.
    pub(crate) fn question(&self) -> String {
        if self.now.is_empty() {
            return self.ask.clone();
        }
        format!("{}\n\nThe current UTC date and time are {}.", self.ask, self.now)
    }

    /// What the `bash` tool says of a command. An output that starts with `Error: ` is a failure.
    pub(crate) fn run(&self, command: &str) -> String {
        match self.outputs.get(command) {
            Some(output) if output.starts_with("Error: ") => output.trim_end().to_owned(),
            Some(output) => format!("{command}\n{}", output.trim_end()),
            None if command.starts_with("kubectl") => format!("{command}\nNo resources found"),
            None => format!(
                "Error: Command \"{command}\" returned non-zero exit status 127:\n\n{command}\nbash: line 1: {command}: command not found"
            ),
        }
    }
}
