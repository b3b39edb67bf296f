//! What a reader of an execution has already.

use std::collections::HashMap;

use wire::executor::{ExecuteEvent, OutputChunk, OutputPosition, execute_event::Kind};

/// How far a reader has come.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// The last event that it has.
    pub(super) sequence: u64,
    /// Bytes that it has of each stream of each command.
    bytes: HashMap<(i32, u32), u64>,
}

impl Known {
    pub(super) fn new(sequence: u64, output: &[OutputPosition]) -> Self {
        let bytes = output.iter().map(|at| ((at.stream, at.command), at.offset)).collect();
        Self { sequence, bytes }
    }

    /// What is new of an event; `None` if nothing is.
    pub(super) fn news(&self, event: &ExecuteEvent) -> Option<ExecuteEvent> {
        let Some(Kind::Output(chunk)) = &event.kind else { return Some(event.clone()) };
        let known = self.bytes.get(&(chunk.stream, chunk.command)).copied().unwrap_or_default();
        let old = usize::try_from(known.saturating_sub(chunk.offset)).unwrap_or(usize::MAX);
        if old == 0 {
            return Some(event.clone());
        }
        if old >= chunk.data.len() {
            return None;
        }
        let rest = OutputChunk { offset: known, data: chunk.data.slice(old..), ..chunk.clone() };
        Some(ExecuteEvent { kind: Some(Kind::Output(rest)), ..event.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_cut_where_it_is_known() {
        let piece = |stream: i32, command, offset, data: &'static [u8]| ExecuteEvent {
            sequence: 7,
            kind: Some(Kind::Output(OutputChunk { stream, command, offset, data: data.into() })),
        };
        let known = Known::new(0, &[OutputPosition { stream: 1, command: 0, offset: 6 }]);
        assert_eq!(known.news(&piece(1, 0, 0, b"abcdef")), None);
        assert_eq!(known.news(&piece(1, 0, 4, b"efgh")), Some(piece(1, 0, 6, b"gh")));
        for whole in [piece(1, 0, 6, b"gh"), piece(1, 0, 9, b"j"), piece(2, 0, 0, b"a"), piece(1, 1, 0, b"a")]
        {
            assert_eq!(known.news(&whole), Some(whole.clone()));
        }
    }
}
