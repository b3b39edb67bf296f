//! The dialect of Robusta's hosted chat: what its events hold, and nothing else.

use domain::{CallId, EventKind, Image, Message, Role, ToolResult};
use gateway::Config;
use serde_json::{Value, json};

use crate::{
    agent::Act,
    conversation::{call, finished, said, started, tool_started},
    world::{World, events},
};

/// A result that is told of in these words, with pictures in these forms.
fn drawn(id: &str, text: &str, forms: &[(&str, &str)]) -> EventKind {
    let image = |(form, data): &(&str, &str)| Image {
        url: format!("data:image/{form};base64,{data}"),
        ..Image::default()
    };
    let images = forms.iter().map(image).collect();
    EventKind::ToolFinished {
        call: CallId::new(id),
        result: ToolResult { images, ..ToolResult::success(text) },
    }
}

#[tokio::test]
async fn a_picture_is_the_data_of_its_result() {
    let calls = ["c1", "c2", "c3"].map(|id| call(id, "draw", "{}"));
    let asks = Message { tool_calls: calls.to_vec(), ..Message::text(Role::Assistant, "") };
    let mut log = vec![started(vec![Message::text(Role::User, "why?")]), said(asks)];
    log.extend(calls.map(|call| tool_started(call, "draw", None)));
    log.extend([
        drawn("c1", "[image 1: image/jpeg]", &[("jpeg", "AAAA"), ("png", "iVBORwA=")]),
        drawn("c2", "[image 1: image/jpeg]", &[("jpeg", "AAAA")]),
        EventKind::ToolFinished { call: CallId::new("c3"), result: ToolResult::error("no pen") },
        finished("because"),
    ]);
    let world = World::new(Config::default(), Act::Play(log)).await;
    let body = json!({"ask": "why?", "stream": true}).to_string();
    let shown: Vec<Value> = events(world.post("/api/holmes/default/chat", &body))
        .await
        .into_iter()
        .filter_map(|(name, data)| (name == "tool_calling_result").then_some(data))
        .collect();
    let expected = json!([
        {"tool_call_id": "c1", "name": "draw", "result_type": "png",
         "result": {"status": "success", "data": "iVBORwA="}},
        {"tool_call_id": "c2", "name": "draw", "result": {"status": "success", "data": "[image 1: image/jpeg]"}},
        {"tool_call_id": "c3", "name": "draw", "result": {"status": "error", "error": "no pen"}},
    ]);
    assert_eq!(Value::from(shown), expected);
}
