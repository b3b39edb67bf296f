//! The events of the HolmesGPT dialect in this one's form: fewer fields, and other names.

use serde::Serialize;

use crate::{
    answer::{self, Interruption},
    holmes::{Encoder, End, Event, Outgoing, PendingApproval, ToolResult, json},
    sse::Frame,
};

/// Makes frames of a run.
#[derive(Debug)]
pub(super) struct Projection(Encoder);

impl Projection {
    pub(super) fn new(encoder: Encoder) -> Self {
        Self(encoder)
    }

    /// The frame of an event, if this dialect has it.
    fn reword(&self, event: Event) -> Option<Frame> {
        let name = event.name();
        let data = match event {
            Event::StartToolCalling(start) => json(&StartToolCalling {
                tool_call_id: start.id,
                tool_name: start.tool_name,
                description: start.description,
            }),
            Event::ToolCallingResult(ended) => {
                let (result, result_type) = ended.result.map(outcome).unzip();
                json(&ToolCallingResult {
                    tool_call_id: ended.tool_call_id,
                    name: ended.name,
                    result,
                    result_type: result_type.flatten(),
                })
            }
            Event::AiMessage(said) => json(&AiMessage { content: said.content? }),
            Event::Notice(said) => json(&AiMessage { content: said.content }),
            Event::TokenCount(count) => {
                let (input_tokens, output_tokens) = count.metadata.totals();
                json(&TokenCount { input_tokens, output_tokens })
            }
            Event::CompactionStart(_) | Event::Compacted(_) => return None,
            Event::AiAnswerEnd(end) => {
                json(&AiAnswerEnd { analysis: end.analysis, cluster_id: self.0.cluster() })
            }
            Event::ApprovalRequired(waits) => {
                json(&ApprovalRequired { conversation_history: waits.conversation_history })
            }
            Event::Error(error) => {
                json(&ErrorEvent { msg: error.msg, error_code: error.error_code.to_string() })
            }
        };
        Some(Frame { event: name, data })
    }
}

impl answer::Projection for Projection {
    fn frame(&mut self, event: domain::Event) -> Option<Frame> {
        let event = self.0.encode(event)?;
        self.reword(event)
    }

    fn broken(&self, why: &Interruption) -> Frame {
        let data = json(&ErrorEvent { msg: why.to_string(), error_code: "HOLMES_ERROR".to_owned() });
        Frame { event: "error", data }
    }
}

#[derive(Serialize)]
struct StartToolCalling {
    tool_call_id: String,
    tool_name: String,
    description: String,
}

#[derive(Serialize)]
struct ToolCallingResult {
    tool_call_id: String,
    name: String,
    result: Option<Outcome>,
    /// What `data` is, where it is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
}

/// What a tool returned, or what went wrong.
#[derive(Serialize)]
struct Outcome {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What this dialect has of a result: a picture in the place of the text about it. It knows PNG alone.
fn outcome(result: ToolResult) -> (Outcome, Option<&'static str>) {
    let png = result.png().map(str::to_owned);
    let result_type = png.is_some().then_some("png");
    let (status, text, error) = result.into_parts();
    match error {
        None => (Outcome { status, data: Some(png.unwrap_or(text)), error }, result_type),
        Some(_) => (Outcome { status, data: None, error }, None),
    }
}

#[derive(Serialize)]
struct AiMessage {
    content: String,
}

#[derive(Serialize)]
struct TokenCount {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Serialize)]
struct AiAnswerEnd<'a> {
    analysis: String,
    cluster_id: &'a str,
}

#[derive(Serialize)]
struct ApprovalRequired {
    conversation_history: Vec<Outgoing>,
}

#[derive(Serialize)]
struct ErrorEvent {
    msg: String,
    error_code: String,
}

/// The answer that is not streamed. What follows `analysis` is only there if the run waits for a person.
#[derive(Serialize)]
pub(super) struct Reply {
    cluster_id: String,
    analysis: String,
    #[serde(flatten)]
    waits: Option<Waits>,
}

#[derive(Serialize)]
struct Waits {
    requires_approval: bool,
    pending_approvals: Vec<PendingApproval>,
    conversation_history: Vec<Outgoing>,
}

impl Reply {
    pub(super) fn new(cluster_id: String, end: End) -> Self {
        match end {
            End::Answered(end) => Self { cluster_id, analysis: end.analysis, waits: None },
            End::Waits(waits) => {
                let waits = Waits {
                    requires_approval: true,
                    pending_approvals: waits.pending_approvals,
                    conversation_history: waits.conversation_history,
                };
                Self { cluster_id, analysis: String::new(), waits: Some(waits) }
            }
        }
    }
}
