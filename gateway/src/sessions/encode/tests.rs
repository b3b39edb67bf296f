//! Every type of the catalogue, field by field.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wire::session::{
    ActCompleted, ActStarted, Budget, CapabilityUsage, ContentPart, Context, ContextCompacted,
    ContextCompacting, Controls, Event, ExternalActor, Failure, FileWritten, ImagePart, InputMessage,
    LlmGeneration, Message, ModelMetadata, OutputMessageCompleted, OutputMessageDelta, OutputMessageReplaced,
    OutputMessageStarted, ReasonCompleted, ReasonItem, ReasonRecovered, ReasonStarted,
    ReasonThinkingCompleted, ReasonThinkingDelta, ReasonThinkingStarted, SessionActivated, SessionIdled,
    SessionStarted, SessionTask, TaskMessage, ToolApprovalRequested, ToolCall, ToolCallRepaired,
    ToolCallRequested, ToolCallSummary, ToolCompleted, ToolOutputDelta, ToolProgress, ToolResultPart,
    ToolStarted, TranscriptRepaired, TurnCancelled, TurnCompleted, TurnFailed, TurnSealed, TurnStarted,
    Usage, VoiceSessionEnded, VoiceSessionFailed, VoiceSessionStarted, VoiceTranscript, capability_usage,
    content_part::Part, event::Data,
};

use super::*;

const TIME: prost_types::Timestamp = prost_types::Timestamp { seconds: 1, nanos: 0 };

fn s(text: &str) -> String {
    text.to_owned()
}

fn o(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn part(part: Part) -> ContentPart {
    ContentPart { part: Some(part) }
}

fn said() -> Message {
    Message {
        id: s("m"),
        role: s("user"),
        content: vec![
            part(Part::Text(s("hi"))),
            part(Part::Image(ImagePart { url: o("https://a"), ..ImagePart::default() })),
        ],
        created_at: Some(TIME),
        controls: Some(Controls {
            reasoning_effort: o("high"),
            locale: o("uk-UA"),
            error_disclosure: o("generic"),
            hints_json: o("{\"a\":1}"),
            ..Controls::default()
        }),
        metadata_json: o("{\"k\":\"v\"}"),
        external_actor: Some(ExternalActor {
            actor_id: s("U1"),
            source: s("slack"),
            ..ExternalActor::default()
        }),
        tags: vec![s("t")],
        ..Message::default()
    }
}

fn said_json() -> Value {
    json!({
        "id": "m", "role": "user", "created_at": "1970-01-01T00:00:01Z", "metadata": { "k": "v" }, "tags": ["t"],
        "content": [{ "type": "text", "text": "hi" }, { "type": "image", "url": "https://a" }],
        "controls": {
            "reasoning": { "effort": "high" }, "locale": "uk-UA", "error_disclosure": "generic", "hints": { "a": 1 },
        },
        "external_actor": { "actor_id": "U1", "source": "slack" },
    })
}

fn spent() -> Usage {
    Usage { input_tokens: 3, output_tokens: 2, cache_read_tokens: Some(1), ..Usage::default() }
}

fn spent_json() -> Value {
    json!({ "input_tokens": 3, "output_tokens": 2, "cache_read_tokens": 1 })
}

fn call() -> ToolCall {
    ToolCall { id: s("c"), name: s("bash"), arguments_json: s("{\"x\":1}") }
}

fn call_json() -> Value {
    json!({ "id": "c", "name": "bash", "arguments": { "x": 1 } })
}

fn failure() -> Failure {
    Failure { code: o("processing_error"), fields_json: o("{\"model_id\":\"m\"}"), disclosure: o("standard") }
}

fn model() -> (ModelMetadata, Value) {
    (
        ModelMetadata { model: s("gpt"), provider: None },
        json!({ "model": "gpt", "model_id": ids::model("gpt") }),
    )
}

fn messages() -> Vec<(Data, Value)> {
    let agent = Message {
        content: vec![
            part(Part::ToolCall(call())),
            part(Part::ToolResult(ToolResultPart {
                tool_call_id: s("c"),
                error: o("no"),
                ..Default::default()
            })),
        ],
        role: s("agent"),
        id: s("a"),
        phase: o("commentary"),
        thinking: o("hm"),
        ..Message::default()
    };
    let agent_json = json!({
        "id": "a", "role": "agent", "phase": "commentary", "thinking": "hm",
        "content": [
            { "type": "tool_call", "id": "c", "name": "bash", "arguments": { "x": 1 } },
            { "type": "tool_result", "tool_call_id": "c", "error": "no" },
        ],
    });
    let started =
        OutputMessageStarted { turn_id: s("t"), model: o("gpt"), iteration: Some(1), message_id: s("m") };
    let delta =
        OutputMessageDelta { turn_id: s("t"), delta: s("b"), accumulated: o("ab"), message_id: s("m") };
    let replaced = OutputMessageReplaced {
        turn_id: s("t"),
        guardrail_capability_id: s("g"),
        guardrail_id: s("i"),
        reason_code: s("r"),
        replacement: s("x"),
        message_id: s("m"),
    };
    let completed = OutputMessageCompleted {
        message: Some(agent),
        metadata: Some(model().0),
        usage: Some(spent()),
        failure: Some(failure()),
    };
    let generation = LlmGeneration {
        messages: vec![said()],
        text: o("hi"),
        tool_calls: vec![call()],
        model: s("gpt"),
        success: true,
        provider: o("openai"),
        duration_ms: Some(5),
        finish_reasons: vec![s("stop")],
        ..LlmGeneration::default()
    };
    vec![
        (Data::InputMessage(InputMessage { message: Some(said()) }), json!({ "message": said_json() })),
        (
            Data::OutputMessageStarted(started),
            json!({ "turn_id": "t", "model": "gpt", "iteration": 1, "message_id": "m" }),
        ),
        (
            Data::OutputMessageDelta(delta),
            json!({ "turn_id": "t", "delta": "b", "accumulated": "ab", "message_id": "m" }),
        ),
        (
            Data::OutputMessageReplaced(replaced),
            json!({
                "turn_id": "t", "guardrail_capability_id": "g", "guardrail_id": "i", "reason_code": "r",
                "replacement": "x", "message_id": "m",
            }),
        ),
        (
            Data::OutputMessageCompleted(completed),
            json!({
                "message": agent_json, "metadata": model().1, "usage": spent_json(),
                "error_code": "processing_error", "error_fields": { "model_id": "m" }, "error_disclosure": "standard",
            }),
        ),
        (
            Data::LlmGeneration(generation),
            json!({
                "messages": [said_json()], "output": { "text": "hi", "tool_calls": [call_json()] },
                "metadata": {
                    "model": "gpt", "success": true, "provider": "openai", "duration_ms": 5,
                    "finish_reasons": ["stop"],
                },
            }),
        ),
    ]
}

fn turns() -> Vec<(Data, Value)> {
    let completed = TurnCompleted {
        turn_id: s("t"),
        iterations: 2,
        duration_ms: Some(9),
        usage: Some(spent()),
        final_message_id: o("m"),
        tool_call_count: Some(0),
        status: o("completed"),
        ..TurnCompleted::default()
    };
    let sealed =
        TurnSealed { turn_id: s("t"), reason: s("no_progress"), detail: o("d"), ..TurnSealed::default() };
    let cancelled = TurnCancelled { turn_id: s("t"), reason: o("r"), usage: None };
    let session = SessionStarted { harness_id: s("h"), agent_id: o("a"), model_id: o("gpt") };
    let activated = SessionActivated { turn_id: s("t"), input_message_id: s("m") };
    let idled = SessionIdled { turn_id: s("t"), iterations: Some(1), usage: Some(spent()) };
    let started = TurnStarted { turn_id: s("t"), input_message_id: s("m"), input_content: o("hi") };
    let failed = TurnFailed { turn_id: s("t"), error: s("e"), failure: Some(failure()) };
    vec![
        (
            Data::TurnStarted(started),
            json!({ "turn_id": "t", "input_message_id": "m", "input_content": "hi" }),
        ),
        (
            Data::TurnCompleted(completed),
            json!({
                "turn_id": "t", "iterations": 2, "duration_ms": 9, "usage": spent_json(), "final_message_id": "m",
                "tool_call_count": 0, "status": "completed",
            }),
        ),
        (
            Data::TurnFailed(failed),
            json!({
                "turn_id": "t", "error": "e", "error_code": "processing_error",
                "error_fields": { "model_id": "m" }, "error_disclosure": "standard",
            }),
        ),
        (Data::TurnSealed(sealed), json!({ "turn_id": "t", "reason": "no_progress", "detail": "d" })),
        (Data::TurnCancelled(cancelled), json!({ "turn_id": "t", "reason": "r" })),
        (
            Data::SessionStarted(session),
            json!({ "harness_id": "h", "agent_id": "a", "model_id": ids::model("gpt") }),
        ),
        (Data::SessionActivated(activated), json!({ "turn_id": "t", "input_message_id": "m" })),
        (Data::SessionIdled(idled), json!({ "turn_id": "t", "iterations": 1, "usage": spent_json() })),
    ]
}

fn reasoning() -> Vec<(Data, Value)> {
    let started = ReasonStarted { harness_id: s("h"), agent_id: o("a"), metadata: Some(model().0) };
    let completed =
        ReasonCompleted { success: false, tool_call_count: 0, error: o("e"), ..ReasonCompleted::default() };
    let recovered = ReasonRecovered { turn_id: s("t"), mode: s("restart"), accumulated_len: 4 };
    let thinks = ReasonThinkingStarted { turn_id: s("t"), model: o("gpt") };
    let delta = ReasonThinkingDelta { turn_id: s("t"), delta: s("h"), accumulated: None };
    let thought = ReasonThinkingCompleted { turn_id: s("t"), thinking: s("hm") };
    let item = ReasonItem {
        turn_id: s("t"),
        provider: s("anthropic"),
        item_id: s("i"),
        summary: vec![s("x")],
        token_count: Some(3),
        ..ReasonItem::default()
    };
    let record = capability_usage::Record {
        capability_id: s("bash"),
        usage_kind: s("invoked"),
        tool_name: o("bash"),
        usage_count: Some(1),
        ..capability_usage::Record::default()
    };
    vec![
        (Data::ReasonStarted(started), json!({ "harness_id": "h", "agent_id": "a", "metadata": model().1 })),
        (
            Data::ReasonCompleted(completed),
            json!({ "success": false, "has_tool_calls": false, "tool_call_count": 0, "error": "e" }),
        ),
        (
            Data::ReasonRecovered(recovered),
            json!({ "turn_id": "t", "mode": "restart", "accumulated_len": 4 }),
        ),
        (Data::ReasonThinkingStarted(thinks), json!({ "turn_id": "t", "model": "gpt" })),
        (Data::ReasonThinkingDelta(delta), json!({ "turn_id": "t", "delta": "h" })),
        (Data::ReasonThinkingCompleted(thought), json!({ "turn_id": "t", "thinking": "hm" })),
        (
            Data::ReasonItem(item),
            json!({ "turn_id": "t", "provider": "anthropic", "item_id": "i", "summary": ["x"], "token_count": 3 }),
        ),
        (
            Data::CapabilityUsage(CapabilityUsage { records: vec![record] }),
            json!({ "records": [
                { "capability_id": "bash", "usage_kind": "invoked", "tool_name": "bash", "usage_count": 1 },
            ] }),
        ),
    ]
}

fn tools() -> Vec<(Data, Value)> {
    let summary = ToolCallSummary { id: s("c"), name: s("bash"), narration: o("n"), ..Default::default() };
    let started = ActStarted { tool_calls: vec![summary], headline: o("h") };
    let acted = ActCompleted { completed: true, success_count: 1, ..ActCompleted::default() };
    let begun = ToolStarted { tool_call: Some(call()), narration: o("n"), ..ToolStarted::default() };
    let completed = ToolCompleted {
        tool_call_id: s("c"),
        tool_name: s("bash"),
        success: true,
        status: s("success"),
        result: vec![part(Part::Text(s("out")))],
        duration_ms: Some(1),
        ..ToolCompleted::default()
    };
    let progress = ToolProgress {
        tool_call_id: s("c"),
        tool_name: s("bash"),
        message: s("half"),
        current: Some(1),
        total: Some(2),
        ..ToolProgress::default()
    };
    let printed =
        ToolOutputDelta { tool_call_id: s("c"), tool_name: s("bash"), delta: s("x"), stream: s("stderr") };
    let requested = ToolCallRequested { tool_calls: vec![call()], ..ToolCallRequested::default() };
    let asked = ToolApprovalRequested {
        tool_call: Some(call()),
        reason: s("r"),
        command: o("rm x"),
        effect: s("mutation"),
        run_id: s("run_1"),
        policy_version: s("p"),
        ..ToolApprovalRequested::default()
    };
    let repaired = TranscriptRepaired { tool_call_id: s("c"), action: s("replay"), tool_name: o("bash") };
    let mended = ToolCallRepaired {
        turn_id: s("t"),
        tool_call_id: s("c"),
        tool_name: s("bash"),
        outcome: s("local-salvage"),
    };
    vec![
        (
            Data::ActStarted(started),
            json!({ "tool_calls": [{ "id": "c", "name": "bash", "narration": "n" }], "headline": "h" }),
        ),
        (Data::ActCompleted(acted), json!({ "completed": true, "success_count": 1, "error_count": 0 })),
        (Data::ToolStarted(begun), json!({ "tool_call": call_json(), "narration": "n" })),
        (
            Data::ToolCompleted(completed),
            json!({
                "tool_call_id": "c", "tool_name": "bash", "success": true, "status": "success", "duration_ms": 1,
                "result": [{ "type": "text", "text": "out" }],
            }),
        ),
        (
            Data::ToolProgress(progress),
            json!({ "tool_call_id": "c", "tool_name": "bash", "message": "half", "current": 1, "total": 2 }),
        ),
        (
            Data::ToolOutputDelta(printed),
            json!({ "tool_call_id": "c", "tool_name": "bash", "delta": "x", "stream": "stderr" }),
        ),
        (Data::ToolCallRequested(requested), json!({ "tool_calls": [call_json()] })),
        (
            Data::ToolApprovalRequested(asked),
            json!({ "tool_call": call_json(), "reason": "r", "command": "rm x", "effect": "mutation" }),
        ),
        (
            Data::TranscriptRepaired(repaired),
            json!({ "tool_call_id": "c", "action": "replay", "tool_name": "bash" }),
        ),
        (
            Data::ToolCallRepaired(mended),
            json!({ "turn_id": "t", "tool_call_id": "c", "tool_name": "bash", "outcome": "local-salvage" }),
        ),
    ]
}

fn rest() -> Vec<(Data, Value)> {
    let task = || SessionTask {
        id: s("task_1"),
        session_id: s("s"),
        kind: s("k"),
        display_name: s("d"),
        state: s("queued"),
        progress_json: o("{\"current\":1}"),
        attempt: 1,
        wake_policy: s("silent"),
        created_at: Some(TIME),
        updated_at: Some(TIME),
        ..SessionTask::default()
    };
    let task_json = json!({ "task": {
        "id": "task_1", "session_id": "s", "kind": "k", "display_name": "d", "state": "queued", "attempt": 1,
        "progress": { "current": 1 }, "wake_policy": "silent", "created_at": "1970-01-01T00:00:01Z",
        "updated_at": "1970-01-01T00:00:01Z",
    } });
    let mail = || TaskMessage { task_id: s("task_1"), message_json: s("{\"id\":\"tmsg_1\"}") };
    let mail_json = json!({ "task_id": "task_1", "message": { "id": "tmsg_1" } });
    let budget = || Budget {
        budget_id: s("b"),
        balance: 0.5,
        limit: 1.0,
        currency: s("usd"),
        soft_limit: Some(0.8),
        ..Budget::default()
    };
    let budget_json =
        json!({ "budget_id": "b", "balance": 0.5, "limit": 1.0, "currency": "usd", "soft_limit": 0.8 });
    let heard = || VoiceTranscript {
        voice_connection_id: s("v"),
        accumulated: s("ab"),
        item_id: o("i"),
        ..VoiceTranscript::default()
    };
    let heard_json = json!({ "voice_connection_id": "v", "accumulated": "ab", "item_id": "i" });
    let voice = VoiceSessionStarted {
        voice_connection_id: s("v"),
        model: s("m"),
        voice: s("alloy"),
        reasoning_effort: s("low"),
        transport: s("webrtc"),
    };
    let written = FileWritten { path: s("/a"), operation: s("create"), size_bytes: 1, created: true };
    let compacting = ContextCompacting {
        reason: s("manual"),
        strategy: s("summarize"),
        messages_before: 9,
        ..Default::default()
    };
    let compacted = ContextCompacted {
        strategy_used: s("summarize"),
        messages_before: 9,
        messages_after: 2,
        duration_ms: 4,
        ..ContextCompacted::default()
    };
    let ended = VoiceSessionEnded { voice_connection_id: s("v"), duration_ms: Some(3), reason: None };
    let broken = VoiceSessionFailed { voice_connection_id: s("v"), error: s("e") };
    vec![
        (Data::TaskCreated(task()), task_json.clone()),
        (Data::TaskUpdated(task()), task_json),
        (Data::TaskMessageSent(mail()), mail_json.clone()),
        (Data::TaskMessageReceived(mail()), mail_json),
        (
            Data::ContextCompacting(compacting),
            json!({ "reason": "manual", "strategy": "summarize", "messages_before": 9 }),
        ),
        (
            Data::ContextCompacted(compacted),
            json!({ "strategy_used": "summarize", "messages_before": 9, "messages_after": 2, "duration_ms": 4 }),
        ),
        (
            Data::FileWritten(written),
            json!({ "path": "/a", "operation": "create", "size_bytes": 1, "created": true }),
        ),
        (Data::BudgetWarning(budget()), budget_json.clone()),
        (Data::BudgetPaused(budget()), budget_json.clone()),
        (Data::BudgetExhausted(budget()), budget_json.clone()),
        (Data::BudgetResumed(budget()), budget_json),
        (
            Data::VoiceSessionStarted(voice),
            json!({
                "voice_connection_id": "v", "model": "m", "voice": "alloy", "reasoning_effort": "low",
                "transport": "webrtc",
            }),
        ),
        (Data::VoiceInputTranscriptDelta(heard()), heard_json.clone()),
        (Data::VoiceInputTranscriptCompleted(heard()), heard_json.clone()),
        (Data::VoiceOutputTranscriptDelta(heard()), heard_json.clone()),
        (Data::VoiceOutputTranscriptCompleted(heard()), heard_json),
        (Data::VoiceSessionEnded(ended), json!({ "voice_connection_id": "v", "duration_ms": 3 })),
        (Data::VoiceSessionFailed(broken), json!({ "voice_connection_id": "v", "error": "e" })),
    ]
}

#[test]
fn every_type_is_written_like_this() {
    let all = [messages(), turns(), reasoning(), tools(), rest()].concat();
    let mut seen = BTreeSet::new();
    for (data, expected) in all {
        let name = data.name();
        seen.insert(name);
        let context = Context { turn_id: s("t"), ..Context::default() };
        let whole = Event {
            id: s("event_1"),
            sequence: 7,
            time: Some(TIME),
            session_id: s("session_1"),
            context: Some(context),
            metadata_json: None,
            data: Some(data),
        };
        // What was tagged by its author is found by its tags.
        let tags = expected["message"].get("tags").cloned().filter(|_| name == "input.message");
        let mut expected = json!({
            "id": "event_1", "type": name, "ts": "1970-01-01T00:00:01Z", "session_id": "session_1", "sequence": 7,
            "context": { "turn_id": "t" }, "data": expected,
        });
        expected.as_object_mut().unwrap().extend(tags.map(|tags| (s("tags"), tags)));
        assert_eq!(event(whole), expected);
    }
    assert_eq!(seen, wire::SESSION_EVENTS.into_iter().collect());
}
