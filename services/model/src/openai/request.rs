//! A request in the form of chat completions.

use domain::{CallId, Document, Image, Message, Part, Role, ToolCall};
use serde_json::{Map, Value, json};

use crate::{Request, ToolSpec, api::Target};

pub(super) fn body(target: &Target, request: &Request, output_limit: &str) -> Map<String, Value> {
    let mut body = target.extra.clone();
    if let Some(limit) = body.remove("max_tokens") {
        body.insert(output_limit.into(), limit);
    }
    body.insert("model".into(), json!(target.id));
    body.insert("messages".into(), messages(request));
    body.insert("stream".into(), json!(true));
    body.insert("stream_options".into(), json!({"include_usage": true}));
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    if let Some(format) = &request.response_format {
        body.insert("response_format".into(), format.clone());
    }
    if let Some(effort) = request.effort {
        body.insert("reasoning_effort".into(), json!(effort.name()));
    }
    body
}

/// All instructions come in one message at the start: many servers refuse them elsewhere.
fn messages(request: &Request) -> Value {
    let client = request.messages.iter().filter(|message| message.role == Role::System);
    let texts = std::iter::once(request.system.clone()).chain(client.map(Message::joined_text));
    let system: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    let system = (!system.is_empty()).then(|| json!({"role": "system", "content": system.join("\n\n")}));
    let mut all: Vec<Value> = system.into_iter().collect();
    let mut seen = Vec::new();
    for message in &request.messages {
        if message.role != Role::Tool {
            all.extend(shown(&mut seen));
        }
        all.extend(self::message(message));
        if let (Role::Tool, Some((call, _))) = (message.role, &message.answers) {
            seen.extend(message.parts.iter().filter_map(|part| titled(call, part)).flatten());
        }
    }
    all.extend(shown(&mut seen));
    all.into()
}

/// A result of a tool can only be text here: its images and documents follow behind all the results.
fn shown(seen: &mut Vec<Value>) -> Option<Value> {
    (!seen.is_empty()).then(|| json!({"role": "user", "content": std::mem::take(seen)}))
}

fn titled(call: &CallId, shown: &Part) -> Option<[Value; 2]> {
    let what = match shown {
        Part::Image(_) => "An image",
        Part::Document(_) => "A document",
        Part::Text(_) | Part::Thinking(_) => return None,
    };
    let title = json!({"type": "text", "text": format!("{what} that belongs to the result of {call}:")});
    Some([title, part(shown)?])
}

fn message(message: &Message) -> Option<Value> {
    Some(match (message.role, &message.answers) {
        (Role::System, _) => return None,
        (Role::User, _) | (Role::Tool, None) => json!({"role": "user", "content": content(message)}),
        (Role::Assistant, _) => assistant(message),
        (Role::Tool, Some((call, _))) => {
            json!({"role": "tool", "tool_call_id": call.as_str(), "content": message.joined_text()})
        }
    })
}

fn assistant(message: &Message) -> Value {
    let text = message.joined_text();
    if message.tool_calls.is_empty() {
        return json!({"role": "assistant", "content": text});
    }
    let content = (!text.is_empty()).then_some(text);
    let calls: Value = message.tool_calls.iter().map(call).collect();
    json!({"role": "assistant", "content": content, "tool_calls": calls})
}

fn call(call: &ToolCall) -> Value {
    let function = json!({"name": call.name, "arguments": call.arguments});
    json!({"id": call.id.as_str(), "type": "function", "function": function})
}

/// A text where text is all there is: some servers know no lists.
fn content(message: &Message) -> Value {
    if !message.parts.iter().any(|part| matches!(part, Part::Image(_) | Part::Document(_))) {
        return json!(message.joined_text());
    }
    message.parts.iter().filter_map(part).collect()
}

fn part(part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => Some(json!({"type": "text", "text": text})),
        Part::Image(image) => Some(json!({"type": "image_url", "image_url": image_url(image)})),
        Part::Document(Document { media_type, data }) => {
            let file_data = format!("data:{media_type};base64,{data}");
            Some(json!({"type": "file", "file": {"filename": "document.pdf", "file_data": file_data}}))
        }
        Part::Thinking(_) => None,
    }
}

fn image_url(image: &Image) -> Value {
    let mut url = json!({"url": image.url});
    if let Some(detail) = &image.detail {
        url["detail"] = json!(detail);
    }
    url
}

fn tool(tool: &ToolSpec) -> Value {
    json!({"type": "function", "function": {
        "name": tool.name, "description": tool.description, "parameters": tool.parameters,
    }})
}

#[cfg(test)]
mod tests {
    use domain::Effort;

    use super::*;

    #[test]
    fn a_conversation_is_written_in_full() {
        let image =
            Image { url: "data:image/png;base64,AA".into(), detail: Some("low".into()), format: None };
        let mut asked = Message::text(Role::Assistant, "");
        let id = CallId::new("c1");
        asked.tool_calls.push(ToolCall { id: id.clone(), name: "bash".into(), arguments: "{}".into() });
        let request = Request {
            system: "ours".into(),
            messages: vec![
                Message::new(Role::User, vec![Part::Text("see".into()), Part::Image(image)]),
                Message::text(Role::System, "theirs"),
                asked,
                Message::tool(id, "bash", "out"),
            ],
            tools: vec![ToolSpec { name: "bash".into(), description: "d".into(), parameters: json!({}) }]
                .into(),
            response_format: Some(json!({"type": "json_object"})),
            effort: Some(Effort::Highest),
        };
        let extra = json!({"max_tokens": 7, "temperature": 0.5, "stream": false});
        let Value::Object(extra) = extra else { unreachable!() };
        let target = Target { id: "m".into(), max_output_tokens: 9, extra };
        let expected = json!({
            "model": "m", "stream": true, "stream_options": {"include_usage": true},
            "max_completion_tokens": 7, "temperature": 0.5, "reasoning_effort": "xhigh", "response_format": {"type": "json_object"},
            "messages": [
                {"role": "system", "content": "ours\n\ntheirs"},
                {"role": "user", "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
                ]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "out"},
            ],
            "tools": [{"type": "function", "function": {
                "name": "bash", "description": "d", "parameters": {},
            }}],
        });
        assert_eq!(Value::Object(body(&target, &request, "max_completion_tokens")), expected);
    }

    #[test]
    fn what_tools_have_shown_follows_their_results() {
        let results = ["c1", "c2"].map(|id| {
            let mut result = Message::tool(CallId::new(id), "read", "a picture");
            let image = Image { url: format!("data:image/png;base64,{id}"), ..Image::default() };
            result.parts.push(Part::Image(image));
            result
        });
        let document = Document { media_type: "application/pdf".into(), data: "AAAA".into() };
        let asked = Message::new(Role::User, vec![Part::Text("and this?".into()), Part::Document(document)]);
        let [first, second] = results;
        let request = Request { messages: vec![first, second, asked], ..Request::default() };
        let image = |id: &str| json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{id}")}});
        let title = |id: &str| json!({"type": "text", "text": format!("An image that belongs to the result of {id}:")});
        let file = json!({"filename": "document.pdf", "file_data": "data:application/pdf;base64,AAAA"});
        let expected = json!([
            {"role": "tool", "tool_call_id": "c1", "content": "a picture"},
            {"role": "tool", "tool_call_id": "c2", "content": "a picture"},
            {"role": "user", "content": [
                title("c1"), image("c1"), title("c2"), image("c2"),
            ]},
            {"role": "user", "content": [{"type": "text", "text": "and this?"}, {"type": "file", "file": file}]},
        ]);
        assert_eq!(messages(&request), expected);
    }
}
