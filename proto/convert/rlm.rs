//! Agents that work by code.

use std::time::Duration;

use domain::{CallId, CodeOutput, Rlm};

use crate::agent as wire;

impl From<Rlm> for wire::Rlm {
    fn from(rlm: Rlm) -> Self {
        let Rlm { depth, max_depth, iterations, calls } = rlm;
        Self { depth, max_depth, iterations, model_calls: calls }
    }
}

impl From<wire::Rlm> for Rlm {
    fn from(rlm: wire::Rlm) -> Self {
        let wire::Rlm { depth, max_depth, iterations, model_calls } = rlm;
        Self { depth, max_depth, iterations, calls: model_calls }
    }
}

/// What came of code, with the call that it is.
pub(super) fn output(call: &CallId, output: CodeOutput) -> wire::ReplOutput {
    wire::ReplOutput {
        call_id: call.as_str().to_owned(),
        stdout: output.stdout,
        error: output.error,
        answer: output.answer,
        truncated: output.truncated,
        elapsed: output.elapsed.and_then(|elapsed| elapsed.try_into().ok()),
    }
}

impl From<wire::ReplOutput> for CodeOutput {
    fn from(output: wire::ReplOutput) -> Self {
        Self {
            stdout: output.stdout,
            error: output.error,
            answer: output.answer,
            truncated: output.truncated,
            elapsed: output.elapsed.and_then(|elapsed| Duration::try_from(elapsed).ok()),
        }
    }
}
