//! Events of runs that several tests play.

use std::time::Duration;

use domain::{
    AssistantMessage, CallId, ContextSize, EventKind, Gate, Image, Message, MessageId, ModelCalled, Part,
    Role, RunStarted, Thinking, ToolCall, ToolResult, ToolStatus, Totals, Usage, UsageReported,
};

pub(crate) fn started(messages: Vec<Message>) -> EventKind {
    EventKind::RunStarted(RunStarted {
        model: "first".to_owned(),
        messages,
        overhead: ContextSize { system: 100, tool_schemas: 50, ..ContextSize::default() },
        context_window: 200_000,
        max_output_tokens: 16_384,
        structured: false,
        client_tools: Vec::new(),
        runbooks: Vec::new(),
        waits: false,
        subagents: domain::Subagents::default(),
        rlm: None,
        question: None,
        call: None,
        approvals: true,
        setup: Box::default(),
        account: "default".to_owned(),
        principal: String::new(),
    })
}

pub(crate) fn finished(answer: &str) -> EventKind {
    EventKind::RunFinished { answer: answer.to_owned(), reason: "stop".to_owned() }
}

pub(crate) fn said(message: Message) -> EventKind {
    let id = MessageId::new("msg_1_1");
    EventKind::AssistantMessage(AssistantMessage {
        id,
        message,
        finish_reason: "stop".to_owned(),
        exchange: Box::default(),
    })
}

/// A question and its answer.
pub(crate) fn plain() -> Vec<EventKind> {
    vec![
        started(vec![Message::text(Role::User, "why?")]),
        counted(1),
        said(Message::text(Role::Assistant, "because")),
        finished("because"),
    ]
}

pub(crate) fn counted(calls: u32) -> EventKind {
    let usage = Usage { prompt: 10, completion: 5, reasoning: Some(2), ..Usage::default() };
    let totals = (0..calls).fold(Totals::default(), |totals, _| totals.plus(usage));
    let context = ContextSize { system: 100, user: 6, tool_schemas: 50, ..ContextSize::default() };
    EventKind::UsageReported(UsageReported { usage, totals, context })
}

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: CallId::new(id), name: name.to_owned(), arguments: arguments.to_owned() }
}

pub(crate) fn tool_started(call: ToolCall, description: &str, toolset: Option<&str>) -> EventKind {
    EventKind::ToolStarted {
        call,
        description: description.to_owned(),
        toolset: toolset.map(str::to_owned),
        cluster: None,
        gate: Gate::Open,
        by: None,
    }
}

/// A question with an image; a message that thinks, speaks and calls two tools, one of them unknown; an answer.
pub(crate) fn with_tools() -> Vec<EventKind> {
    let image =
        Image { url: "https://a.example/x.png".to_owned(), detail: Some("low".to_owned()), format: None };
    let question = Message::new(Role::User, vec![Part::Text("whý?".to_owned()), Part::Image(image)]);
    let thinking = Thinking { text: "Hm.".to_owned(), signature: Some("sig".to_owned()), redacted: None };
    let echo = call("call_1", "bash", r#"{"command":"echo hi","suggested_prefixes":["echo"]}"#);
    let unknown = call("call_2", "no_such_tool", r#"{"x":1}"#);
    let mut asks =
        Message::new(Role::Assistant, vec![Part::Thinking(thinking), Part::Text("Let me look.".to_owned())]);
    asks.tool_calls = vec![echo.clone(), unknown.clone()];
    let message = MessageId::new("msg_1_1");
    vec![
        started(vec![question]),
        EventKind::ModelCalled(ModelCalled { message: message.clone(), step: 1, attempt: 1, closing: None }),
        EventKind::ThinkingDelta { message: message.clone(), text: "Hm.".to_owned() },
        EventKind::TextDelta { message, text: "Let me look.".to_owned() },
        counted(1),
        said(asks),
        tool_started(echo.clone(), "echo hi", Some("bash")),
        tool_started(unknown.clone(), "", None),
        EventKind::ToolFinished { call: unknown.id, result: ToolResult::error("No tool has that name") },
        EventKind::ToolOutput {
            call: echo.id.clone(),
            stream: domain::OutputStream::Stdout,
            text: "hi\n".to_owned(),
        },
        EventKind::ToolFinished {
            call: echo.id,
            result: ToolResult {
                status: ToolStatus::Success,
                data: "echo hi\nhi".to_owned(),
                error: None,
                return_code: Some(0),
                invocation: Some("echo hi".to_owned()),
                elapsed: Some(Duration::from_millis(500)),
                omitted_bytes: 0,
                images: Vec::new(),
                documents: Vec::new(),
                written: Vec::new(),
                ran: None,
            },
        },
        counted(1),
        counted(2),
        said(Message::text(Role::Assistant, "It says hi.")),
        finished("It says hi."),
    ]
}
