//! Conversations as the API wants them.

use serde_json::json;

use super::*;

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall { id: CallId::new(id), name: "bash".into(), arguments: arguments.into() }
}

fn written(request: &Request, extra: Value) -> Value {
    let Value::Object(extra) = extra else { unreachable!("extra members are an object") };
    Value::Object(body(&Target { id: "m".into(), max_output_tokens: 9, extra }, request))
}

fn request(messages: Vec<Message>) -> Request {
    Request { system: "ours".into(), messages, ..Request::default() }
}

#[test]
fn a_conversation_is_written_in_full() {
    let thinking = Thinking { text: "hm".into(), signature: Some("s".into()), redacted: None };
    let redacted = Thinking { redacted: Some("r".into()), ..Thinking::default() };
    let foreign = Thinking { text: "unsigned".into(), ..Thinking::default() };
    let parts = vec![
        Part::Thinking(thinking),
        Part::Thinking(redacted),
        Part::Thinking(foreign),
        Part::Text("let me see".into()),
    ];
    let mut asked = Message::new(Role::Assistant, parts);
    asked.tool_calls = vec![call("a", r#"{"x":1}"#), call("b.1", "{}")];
    let image = |url: &str| Part::Image(Image { url: url.into(), ..Image::default() });
    let mut request = request(vec![
        Message::text(Role::System, "theirs"),
        Message::text(Role::User, "one"),
        Message::new(Role::User, vec![image("data:image/jpeg;base64,AA"), image("https://x/y.png")]),
        asked,
        Message::tool(CallId::new("a"), "bash", "out"),
        Message::tool(CallId::new("b.1"), "bash", ""),
        Message::text(Role::User, "go on"),
    ]);
    request.tools =
        vec![ToolSpec { name: "bash".into(), description: "d".into(), parameters: json!({}) }].into();
    let mark = json!({"type": "ephemeral"});
    let expected = json!({
        "model": "m", "stream": true, "max_tokens": 9, "thinking": {"type": "adaptive"},
        "system": [
            {"type": "text", "text": "ours"},
            {"type": "text", "text": "theirs", "cache_control": mark},
        ],
        "tools": [{"name": "bash", "description": "d", "input_schema": {}, "cache_control": mark}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "one"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AA"}},
                {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "r"},
                {"type": "text", "text": "let me see"},
                {"type": "tool_use", "id": "a", "name": "bash", "input": {"x": 1}},
                {"type": "tool_use", "id": "b_1", "name": "bash", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "out"}]},
                {"type": "tool_result", "tool_use_id": "b_1"},
                {"type": "text", "text": "go on", "cache_control": mark},
            ]},
        ],
    });
    assert_eq!(written(&request, json!({"thinking": {"type": "adaptive"}})), expected);
}

#[test]
fn calls_without_tools_are_declared_and_forbidden() {
    let mut asked = Message::text(Role::Assistant, "");
    asked.tool_calls = vec![call("a", "{}"), call("b", "{}")];
    let body = written(&request(vec![asked]), json!({"max_tokens": 3}));
    assert_eq!(body["tools"].as_array().map(Vec::len), Some(1));
    assert_eq!(body["tools"][0]["name"], "bash");
    assert_eq!(body["tool_choice"]["type"], "none");
    assert_eq!(body["max_tokens"], 3);
    assert_eq!(written(&request(vec![]), json!({})).get("tools"), None);
}

#[test]
fn the_form_of_the_answer_joins_what_is_configured() {
    let schema = json!({"type": "object"});
    let mut request = request(vec![Message::text(Role::User, "q")]);
    request.response_format =
        Some(json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}));
    let body = written(&request, json!({"output_config": {"effort": "low"}}));
    let format = json!({"type": "json_schema", "schema": schema});
    assert_eq!(body["output_config"], json!({"effort": "low", "format": format}));
    request.response_format = Some(json!({"type": "json_object"}));
    assert!(written(&request, json!({}))["system"][1]["text"].as_str().unwrap().contains("JSON object"));
}

#[test]
fn documents_and_what_tools_have_shown_are_blocks() {
    let document = domain::Document { media_type: "application/pdf".into(), data: "AAAA".into() };
    let mut result = Message::tool(CallId::new("a"), "read", "a document");
    result.parts.push(Part::Document(document));
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": "AAAA"});
    let body = written(&request(vec![result]), json!({}));
    assert_eq!(
        body["messages"][0]["content"][0]["content"][1],
        json!({"type": "document", "source": source})
    );
}
