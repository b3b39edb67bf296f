//! The oddities of servers that speak chat completions.

use serde_json::json;

use super::*;
use crate::{Delta, Reply, Request, draft::Context};

fn reply(chunks: &[Value]) -> Result<Reply, Failure> {
    let mut draft = Draft::default();
    chunks.iter().try_for_each(|chunk| read(&chunk.to_string(), &mut draft))?;
    draft.into_reply(Context::of(&Request::default()))
}

fn calls(pieces: &[Value]) -> Vec<(String, String, String)> {
    let chunks: Vec<Value> =
        pieces.iter().map(|piece| json!({"choices": [{"delta": {"tool_calls": [piece]}}]})).collect();
    let reply = reply(&chunks).unwrap();
    let calls = reply.calls().iter();
    calls.map(|call| (call.id.to_string(), call.name.clone(), call.arguments.clone())).collect()
}

fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.into(), name.into(), arguments.into())
}

#[test]
fn calls_are_put_together_whatever_tells_them_apart() {
    let expected = [call("a", "x", r#"{"n":1}"#), call("b", "y", r#"{"n":2}"#)];
    let interleaved = [
        json!({"index": 0, "id": "a", "function": {"name": "x", "arguments": "{\"n\""}}),
        json!({"index": 1, "id": "b", "function": {"name": "y", "arguments": "{\"n\":"}}),
        json!({"index": 0, "function": {"arguments": ":1}"}}),
        json!({"index": 1, "function": {"arguments": "2}"}}),
    ];
    assert_eq!(calls(&interleaved), expected, "by index");
    let same_index = [
        json!({"index": 0, "id": "a", "function": {"name": "x", "arguments": "{\"n\":1}"}}),
        json!({"index": 0, "id": "b", "function": {"name": "y", "arguments": "{\"n\":2}"}}),
    ];
    assert_eq!(calls(&same_index), expected, "one index for all");
    let no_index = [
        json!({"id": "a", "function": {"name": "x", "arguments": "{\"n\":"}}),
        json!({"function": {"arguments": "1}"}}),
        json!({"id": "b", "function": {"name": "y", "arguments": {"n": 2}}}),
    ];
    assert_eq!(calls(&no_index), expected, "no index");
    let bare = [
        json!({"function": {"name": "x", "arguments": "{\"n\":1}"}}),
        json!({"function": {"name": "x", "arguments": "{\"n\":2}"}}),
    ];
    assert_eq!(calls(&bare), [call("call_0", "x", r#"{"n":1}"#), call("call_1", "x", r#"{"n":2}"#)]);
}

#[test]
fn thinking_comes_under_several_names() {
    let delta = |delta: Value| json!({"choices": [{"delta": delta}]});
    let mut draft = Draft::default();
    for chunk in [
        delta(json!({"reasoning_content": "a", "reasoning": "a", "content": null})),
        delta(json!({"reasoning": "b", "content": ""})),
        delta(json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "c"}]}]})),
        delta(json!({"content": [{"type": "text", "text": "said"}]})),
    ] {
        read(&chunk.to_string(), &mut draft).unwrap();
    }
    let deltas: Vec<Delta> = draft.deltas.drain(..).collect();
    let thought = ["a", "b", "c"].map(|text| Delta::Thinking(text.into()));
    assert_eq!(deltas[..3], thought);
    assert_eq!(deltas[3..], [Delta::Text("said".into())]);
    let reply = draft.into_reply(Context::of(&Request::default())).unwrap();
    assert_eq!(reply.message.joined_thinking().as_deref(), Some("abc"));
    assert_eq!(reply.message.joined_text(), "said");
    assert!(reply.usage.completion > 0, "counts are estimated where none came");
}

#[test]
fn counts_are_read_in_detail() {
    let counts = json!({"choices": [{"finish_reason": "length"}], "usage": {
        "prompt_tokens": 10, "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }});
    let expected =
        Usage { prompt: 10, completion: 5, cached: Some(4), reasoning: Some(3), ..Usage::default() };
    let reply = reply(&[counts]).unwrap();
    assert_eq!((reply.usage, reply.finish_reason.as_str()), (expected, "length"));
}

#[test]
fn errors_inside_a_stream_are_errors() {
    let error = json!({"error": {"message": "out of capacity", "code": 503}});
    assert_eq!(reply(&[error]), Err(Failure::unavailable("out of capacity")));
    let garbage = read("{garbage", &mut Draft::default()).unwrap_err();
    assert_eq!(garbage.error.kind(), "malformed");
    let nameless = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a"}]}}]});
    assert_eq!(reply(&[nameless]).unwrap_err().error.kind(), "malformed");
}
