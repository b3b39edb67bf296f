//! Whatever arrives at the endpoints of the dialect gets an answer in time, and never one that blames the server.

use std::time::Duration;

use proptest::{prelude::*, test_runner::TestRunner};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime::Runtime,
    time::timeout,
};

use crate::bench::Bench;

/// More than any answer may take; one that hangs does not come.
const DEADLINE: Duration = Duration::from_secs(60);
const CASES: u32 = 150;

/// Any JSON, with the words of the dialect among its keys and texts.
fn anything() -> impl Strategy<Value = Value> {
    let word = || {
        prop_oneof![
            prop::sample::select(vec![
                "messages",
                "role",
                "content",
                "type",
                "text",
                "user",
                "assistant",
                "tool",
                "tool_calls",
                "tool_call_id",
                "id",
                "name",
                "function",
                "arguments",
                "document",
                "image",
                "mediaType",
                "data",
                "application/pdf",
                "permissions",
                "allowlist",
                "allowOnce",
                "deny",
                "toolCallId",
                "params",
                "mode",
                "rlm",
                "context",
                "maxIterations",
                "maxDepth",
                "model",
                "gpt",
                "sessionId",
                "response",
                "approved",
            ])
            .prop_map(str::to_owned),
            any::<String>(),
        ]
    };
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A good body of a chat with something else in the place of one of its values.
fn nearly_good() -> impl Strategy<Value = Value> {
    let good = json!({
        "model": "gpt", "context": "more", "mode": "rlm", "maxIterations": 2, "maxDepth": 1,
        "messages": [
            {"role": "user", "content": [{"type": "document", "mediaType": "text/plain", "data": "aGk="}]},
            {"role": "assistant", "content": "x", "tool_calls": [{"id": "c", "name": "bash", "arguments": {}}]},
            {"role": "tool", "tool_call_id": "c", "content": "y"}, {"role": "user", "content": "why?"},
        ],
        "permissions": {"allowlist": ["read"], "allowOnce": [], "deny": [{"toolCallId": "c", "reason": "no"}]},
    });
    let places = places(&good, "");
    (prop::sample::select(places), anything()).prop_map(move |(place, value)| {
        let mut body = good.clone();
        *body.pointer_mut(&place).unwrap() = value;
        body
    })
}

/// The places of all values in a body, as JSON pointers.
fn places(value: &Value, at: &str) -> Vec<String> {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    let below = members.into_iter().flat_map(|(key, value)| {
        let place = format!("{at}/{key}");
        let mut found = places(value, &place);
        found.push(place);
        found
    });
    below.collect()
}

fn bodies() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        anything().prop_map(|json| json.to_string().into_bytes()),
        nearly_good().prop_map(|json| json.to_string().into_bytes()),
        // What breaks off.
        (nearly_good(), any::<prop::sample::Index>()).prop_map(|(json, at)| {
            let mut bytes = json.to_string().into_bytes();
            bytes.truncate(at.index(bytes.len()));
            bytes
        }),
    ]
}

/// Part of a path, as it may stand in a URL.
fn segment() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<u8>(), 0..60)
        .prop_map(|bytes| bytes.iter().map(|byte| format!("%{byte:02X}")).collect())
}

/// Runs cases against one server, which then still answers.
fn against<S: Strategy>(strategy: S, case: &impl AsyncFn(&Bench, &Client, S::Value)) {
    let runtime = Runtime::new().unwrap();
    let bench = runtime.block_on(Bench::start());
    let client = Client::new();
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let ran = TestRunner::new(config).run(&strategy, |value| {
        runtime.block_on(case(&bench, &client, value));
        Ok(())
    });
    ran.unwrap();
    let models =
        runtime.block_on(async { client.get(bench.url() + "/models").send().await.unwrap().status() });
    assert_eq!(models, 200);
}

async fn send(bench: &Bench, client: &Client, method: Method, path: &str, body: Vec<u8>) {
    let shown = String::from_utf8_lossy(&body).into_owned();
    let request = client.request(method, bench.url() + path).header("content-type", "application/json");
    let asked = async {
        let answer = request.body(body).send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    let (status, text) = timeout(DEADLINE, asked).await.unwrap_or_else(|_| panic!("{path} hangs: {shown}"));
    assert!(!status.is_server_error(), "{path}: {status} {text}: {shown}");
    if status.is_client_error() {
        let error: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"));
        assert!(error["error"].is_string(), "{path}: {text}");
    }
}

#[test]
fn any_body_of_a_chat_is_answered() {
    against(bodies(), &async |bench, client, body| {
        send(bench, client, Method::POST, "/chat", body).await;
    });
}

#[test]
fn any_answer_to_any_relay_is_answered() {
    against((segment(), bodies()), &async |bench, client, (id, body)| {
        send(bench, client, Method::POST, &format!("/chat/relay/{id}"), body).await;
    });
}

#[test]
fn any_method_and_query_of_the_models_is_answered() {
    let methods = prop::sample::select(vec![Method::GET, Method::POST, Method::PUT, Method::DELETE]);
    against((methods, segment(), bodies()), &async |bench, client, (method, query, body)| {
        send(bench, client, method, &format!("/models?{query}"), body).await;
    });
}

/// Bytes that are no HTTP, or nearly.
#[test]
fn any_bytes_on_a_connection_end_it() {
    let heads = prop::sample::select(vec![
        "",
        "POST /chat HTTP/1.1\r\nhost: localhost\r\n",
        "POST /chat HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n",
        "POST /chat HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n",
        "GET /models HTTP/1.1\r\nhost: localhost\r\nlast-event-id: ",
    ]);
    against((heads, prop::collection::vec(any::<u8>(), 0..300)), &async |bench, _, (head, bytes)| {
        let mut stream = TcpStream::connect(bench.sleuth.address("http").unwrap()).await.unwrap();
        // A server that has heard enough may close it before.
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
        let mut said = Vec::new();
        let read = timeout(DEADLINE, stream.read_to_end(&mut said)).await;
        assert!(read.is_ok(), "{head:?} {bytes:?} hangs");
        let status = said.get(9..12).unwrap_or_default();
        assert!(!status.starts_with(b"5"), "{}", String::from_utf8_lossy(&said));
    });
}
