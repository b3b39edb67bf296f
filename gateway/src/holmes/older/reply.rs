//! Answers: those of the current dialect, reshaped.

use serde::{Deserialize, Serialize};

use crate::{
    answer::{Interruption, Projection},
    sse::Frame,
};

use super::{
    super::{
        encode,
        events::{ANSWER_END, AiAnswerEnd, Event, Metadata, ToolCallingResult, json},
        reply::{Called, Reply},
    },
    markdown,
    sections::{Found, Sections},
};

/// The tool that reads a runbook.
const FETCH_RUNBOOK: &str = "fetch_runbook";

/// What the answer to a question looks like.
#[derive(Debug)]
pub(super) enum Form {
    /// An analysis in sections.
    Investigation(Sections),
    /// A verdict, and the instructions that came with the question.
    Verdict { instructions: Vec<String> },
    /// A turn of a conversation.
    Conversation,
}

/// What a client wants to see of the tool calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub(super) calls: bool,
    pub(super) results: bool,
}

impl Shown {
    fn call(self, mut call: ToolCallingResult) -> Option<ToolCallingResult> {
        call.result = call.result.filter(|_| self.results);
        self.calls.then_some(call)
    }
}

/// What was found out.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    analysis: String,
    sections: Option<Found>,
    instructions: Vec<String>,
    metadata: Metadata,
}

/// How an answer ends.
enum End {
    Findings(Findings),
    Conversation(AiAnswerEnd),
}

impl Form {
    /// `read` are the runbooks that were read on the way.
    fn end(&self, mut end: AiAnswerEnd, read: Vec<String>) -> End {
        list_cuts(&mut end.metadata);
        let (analysis, sections, instructions) = match self {
            Self::Investigation(sections) => {
                let (analysis, found) = sections.find(end.analysis);
                let unmatched = read.into_iter().filter(|id| !end.runbooks.contains(id));
                (analysis, found, end.runbooks.iter().cloned().chain(unmatched).collect())
            }
            Self::Verdict { instructions } => {
                let verdict = markdown::without_fence(&end.analysis).to_owned();
                (verdict, None, instructions.iter().cloned().chain(read).collect())
            }
            // The original offers nothing to go on with here.
            Self::Conversation => return End::Conversation(AiAnswerEnd { follow_up_actions: &[], ..end }),
        };
        End::Findings(Findings { analysis, sections, instructions, metadata: end.metadata })
    }
}

/// Clients of this dialect expect the list also when nothing was cut.
fn list_cuts(metadata: &mut Metadata) {
    metadata.truncations.get_or_insert_default();
}

/// The name of the runbook that a call has read.
fn runbook(call: &ToolCallingResult) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        runbook_id: String,
    }
    let params = call.result.as_ref()?.successful_params().filter(|_| call.tool_name == FETCH_RUNBOOK)?;
    serde_json::from_str(params.get()).ok().map(|Params { runbook_id }| runbook_id)
}

/// An answer that is not streamed.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Whole {
    Findings {
        #[serde(flatten)]
        findings: Findings,
        tool_calls: Vec<Called>,
    },
    Conversation(Reply),
}

impl Whole {
    pub(super) fn new(end: AiAnswerEnd, calls: Vec<ToolCallingResult>, form: &Form, shown: Shown) -> Self {
        let runbooks = calls.iter().filter_map(runbook).collect();
        let calls = calls.into_iter().filter_map(|call| shown.call(call));
        match form.end(end, runbooks) {
            End::Findings(findings) => {
                Self::Findings { findings, tool_calls: calls.map(Called::from).collect() }
            }
            End::Conversation(end) => Self::Conversation(Reply::new(end, calls.collect())),
        }
    }
}

/// Domain events in, frames of this dialect out.
#[derive(Debug)]
pub(super) struct Encoder {
    current: encode::Encoder,
    form: Form,
    shown: Shown,
    runbooks: Vec<String>,
    /// Whether the next count is the one after tools.
    recounts: bool,
}

impl Encoder {
    pub(super) fn new(current: encode::Encoder, form: Form, shown: Shown) -> Self {
        Self { current, form, shown, runbooks: Vec::new(), recounts: false }
    }

    fn reshape(&mut self, event: Event) -> Option<Frame> {
        let event = match event {
            // One count for each model call.
            Event::TokenCount(_) if std::mem::take(&mut self.recounts) => return None,
            Event::TokenCount(mut count) => {
                list_cuts(&mut count.metadata);
                Event::TokenCount(count)
            }
            Event::AiMessage(mut message) => {
                list_cuts(&mut message.metadata);
                Event::AiMessage(message)
            }
            Event::StartToolCalling(_) if !self.shown.calls => return None,
            Event::ToolCallingResult(call) => {
                self.recounts = true;
                self.runbooks.extend(runbook(&call));
                Event::ToolCallingResult(Box::new(self.shown.call(*call)?))
            }
            // The original announced only what it had done.
            Event::CompactionStart(_) => return None,
            Event::AiAnswerEnd(end) => return Some(self.end(*end)),
            Event::StartToolCalling(_)
            | Event::Notice(_)
            | Event::Compacted(_)
            | Event::ApprovalRequired(_)
            | Event::Error(_) => event,
        };
        Some(event.frame())
    }

    fn end(&mut self, end: AiAnswerEnd) -> Frame {
        let data = match self.form.end(end, std::mem::take(&mut self.runbooks)) {
            End::Findings(mut findings) => {
                findings.sections.get_or_insert_default();
                json(&findings)
            }
            End::Conversation(end) => json(&end),
        };
        Frame { event: ANSWER_END, data }
    }
}

impl Projection for Encoder {
    fn frame(&mut self, event: domain::Event) -> Option<Frame> {
        let event = self.current.encode(event)?;
        self.reshape(event)
    }

    fn broken(&self, why: &Interruption) -> Frame {
        self.current.broken(why)
    }
}
