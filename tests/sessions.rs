//! Sessions through the whole path: real processes, real streams, a scripted model.

#![cfg(test)]

use std::{path::Path, time::Duration};

use harness::{
    client::{self, Frame, Stream},
    models::ScriptedOpenAi,
    process::{Sleuth, Start, workspaces},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

/// Long enough for a loaded machine; never waited for in a passing test.
const SOON: Duration = Duration::from_secs(90);

struct Bench {
    sleuth: Sleuth,
    openai: ScriptedOpenAi,
    data: TempDir,
}

async fn server(openai: &ScriptedOpenAi, data: &Path) -> Sleuth {
    serve(openai, data).start().await.unwrap()
}

fn serve(openai: &ScriptedOpenAi, data: &Path) -> Start {
    let list = format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
    Start::serve().env("SLEUTH_DATA_DIR", data).models(&list).unwrap()
}

impl Bench {
    async fn start() -> Self {
        let (openai, data) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
        Self { sleuth: server(&openai, data.path()).await, openai, data }
    }

    fn url(&self, path: &str) -> String {
        self.sleuth.url(&format!("/api/v1{path}")).unwrap()
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, body) = client::post(&self.url(path), body).await.unwrap();
        (status.as_u16(), body)
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let response = reqwest::get(self.url(path)).await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn session(&self, settings: &Value) -> String {
        let (status, session) = self.post("/sessions", settings).await;
        assert_eq!((status, &session["status"]), (201, &json!("started")));
        session["id"].as_str().unwrap().to_owned()
    }

    async fn watch(&self, session: &str, query: &str) -> Stream {
        Stream::get(&self.url(&format!("/sessions/{session}/sse?{query}"))).await.unwrap()
    }

    async fn say(&self, session: &str, text: &str) -> Value {
        let (status, message) = self.post(&format!("/sessions/{session}/messages"), &message(text)).await;
        assert_eq!(status, 201, "{message}");
        message
    }

    async fn status(&self, session: &str) -> Value {
        self.get(&format!("/sessions/{session}")).await.1["status"].clone()
    }
}

fn message(text: &str) -> Value {
    json!({ "message": { "content": [{ "type": "text", "text": text }] } })
}

fn script(script: &Value) -> String {
    format!("look FAKE_LLM{script}")
}

fn bash(command: &str, prefix: &str) -> Value {
    json!({ "name": "bash", "args": { "command": command, "suggested_prefixes": [prefix] } })
}

/// Reads up to and with an event.
async fn until(stream: &mut Stream, event: &str) -> Vec<Frame> {
    let reading = async {
        let mut frames = Vec::new();
        while let Some(frame) = stream.next().await.unwrap() {
            let last = frame.event == event;
            frames.push(frame);
            if last {
                return frames;
            }
        }
        panic!("the stream ended without {event}: {frames:#?}")
    };
    timeout(SOON, reading).await.unwrap_or_else(|_| panic!("{event} does not come"))
}

/// The names of events, without deltas.
fn names(frames: &[Frame]) -> Vec<&str> {
    let names = frames.iter().map(|frame| frame.event.as_str());
    names.filter(|name| !name.ends_with(".delta") && *name != "connected").collect()
}

fn find<'a>(frames: &'a [Frame], event: &str) -> &'a Value {
    let found = frames.iter().find(|frame| frame.event == event);
    &found.unwrap_or_else(|| panic!("no {event} in {:?}", names(frames))).data["data"]
}

fn dense(frames: &[Frame], after: u64) {
    let sequences = frames.iter().filter(|frame| frame.event != "connected");
    for (frame, expected) in sequences.zip(after + 1..) {
        assert_eq!(frame.data["sequence"], expected, "{}", frame.event);
        assert_eq!(frame.data["id"], frame.id.as_str());
        assert_eq!(frame.data["type"], frame.event.as_str());
    }
}

const BEGINS: [&str; 4] = ["input.message", "session.started", "session.activated", "turn.started"];
const ASKS: [&str; 5] = [
    "reason.started",
    "output.message.started",
    "llm.generation",
    "output.message.completed",
    "reason.completed",
];

#[tokio::test]
async fn a_turn_is_told_in_order_and_from_any_place() {
    let bench = Bench::start().await;
    let session = bench.session(&json!({ "title": "first" })).await;
    let mut stream = bench.watch(&session, "after_sequence=0").await;
    let steps = json!({ "steps": [[bash("echo hi", "echo")]], "say": "Looking.", "answer": "All is well." });
    let posted = bench.say(&session, &script(&steps)).await;
    assert_eq!(posted["sequence"], 1);
    let frames = until(&mut stream, "session.idled").await;
    let acts = ["act.started", "tool.started", "tool.completed", "act.completed", "capability.usage"];
    let ends = ["turn.completed", "session.idled"];
    let order: Vec<_> = [&BEGINS[..], &ASKS, &acts, &ASKS, &ends].concat();
    assert_eq!(names(&frames), order);
    dense(&frames, 0);

    let turn = find(&frames, "turn.completed");
    assert_eq!((&turn["status"], &turn["tool_call_count"]), (&json!("completed"), &json!(1)));
    assert_eq!(turn["final_answer_preview"], "All is well.");
    assert_eq!(turn["turn_id"], posted["turn_id"]);
    let called = find(&frames, "tool.completed");
    assert_eq!(called["result"][0]["text"], "echo hi\nhi");
    let told = find(&frames, "llm.generation")["messages"].as_array().unwrap();
    assert_eq!((told.len(), &told[0]["role"]), (1, &json!("user")));
    let last = frames.iter().rfind(|frame| frame.event == "output.message.delta").unwrap();
    assert_eq!(last.data["data"]["accumulated"], "All is well.");

    // Whoever comes back after any event, a delta included, gets what followed, and once.
    for at in [1, 6, frames.len() - 2] {
        let mut again = bench.watch(&session, &format!("since_id={}", frames[at].id)).await;
        let rest = until(&mut again, "session.idled").await;
        assert_eq!(rest[1..], frames[at + 1..], "after {}", frames[at].event);
    }
    let path =
        format!("/sessions/{session}/events?types=turn.completed&types=session.idled&exclude=session.idled");
    let (_, listed) = bench.get(&path).await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);

    let other = bench.session(&json!({})).await;
    for (query, detail) in [
        (format!("since_id={}", frames[3].id), "event cursor does not belong to this session"),
        ("since_id=a&after_sequence=1".to_owned(), "since_id and after_sequence are mutually exclusive"),
        ("types=turn.done".to_owned(), "types: unknown event type 'turn.done'"),
    ] {
        let (status, problem) = bench.get(&format!("/sessions/{other}/sse?{query}")).await;
        assert_eq!((status, &problem["detail"]), (400, &json!(detail)));
    }

    // The next turn builds on this one.
    let path = format!("/sessions/{session}/messages?wait=true");
    let (status, waited) = bench.post(&path, &message(&script(&json!({ "answer": "Still well." })))).await;
    assert_eq!((status, &waited["status"]), (200, &json!("completed")));
    assert_eq!(waited["message"]["content"][0]["text"], "Still well.");
    let (_, messages) = bench.get(&format!("/sessions/{session}/messages")).await;
    let roles: Vec<_> = messages["data"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "agent", "tool_result", "agent", "user", "agent"]);
}

#[tokio::test]
async fn the_clients_tools_are_run_by_the_client() {
    let bench = Bench::start().await;
    let tools = json!([{ "type": "client_side", "name": "pick", "description": "Picks", "parameters": { "type": "object" } }]);
    let session = bench.session(&json!({ "tools": tools })).await;
    let mut stream = bench.watch(&session, "after_sequence=0").await;
    let picks = json!({ "steps": [[{ "name": "pick", "args": {} }]], "answer": "picked" });
    bench.say(&session, &script(&picks)).await;
    let frames = until(&mut stream, "tool.call_requested").await;
    let call = find(&frames, "tool.call_requested")["tool_calls"][0]["id"].clone();
    assert!(!names(&frames).contains(&"tool.started"));
    assert_eq!(bench.status(&session).await, "waitingfortoolresults");

    let path = format!("/sessions/{session}/tool-results");
    let results = |id: &Value| json!({ "tool_results": [{ "tool_call_id": id, "result": { "picked": 7 } }] });
    assert_eq!(bench.post(&path, &results(&json!("call_of_another"))).await.0, 400);
    let (status, taken) = bench.post(&path, &results(&call)).await;
    assert_eq!((status, taken), (200, json!({ "accepted": 1, "status": "active" })));
    let rest = until(&mut stream, "session.idled").await;
    let order: Vec<_> =
        [&["tool.completed", "act.completed"][..], &ASKS, &["turn.completed", "session.idled"]].concat();
    assert_eq!(names(&rest), order);
    assert_eq!(find(&rest, "tool.completed")["tool_name"], "pick");
    let (status, problem) = bench.post(&path, &results(&call)).await;
    assert_eq!(status, 409);
    assert!(problem["detail"].as_str().unwrap().contains("not waiting for tool results"));

    // Something new ends the wait.
    bench.say(&session, &script(&picks)).await;
    until(&mut stream, "tool.call_requested").await;
    bench.say(&session, &script(&json!({ "answer": "never mind" }))).await;
    let ended = until(&mut stream, "session.idled").await;
    assert_eq!(names(&ended), ["tool.completed", "act.completed", "turn.cancelled", "session.idled"]);
    let next = until(&mut stream, "session.idled").await;
    assert_eq!(find(&next, "turn.completed")["final_answer_preview"], "never mind");
}

#[tokio::test]
async fn a_turn_can_be_stopped_and_what_comes_during_it_is_heard() {
    let bench = Bench::start().await;
    let session = bench.session(&json!({})).await;
    let mut stream = bench.watch(&session, "after_sequence=0").await;
    let slow = json!({ "steps": [[bash("tail -f /dev/null", "tail")]], "answer": "never" });
    bench.say(&session, &script(&slow)).await;
    until(&mut stream, "tool.started").await;
    let cancel = format!("/sessions/{session}/cancel");
    let (status, cancelled) = bench.post(&cancel, &Value::Null).await;
    assert_eq!((status, &cancelled["status"]), (200, &json!("cancelled")));
    let ended = until(&mut stream, "session.idled").await;
    let order = [
        "tool.completed",
        "act.completed",
        "capability.usage",
        "turn.cancelled",
        "input.message",
        "session.idled",
    ];
    assert_eq!(names(&ended), order);
    assert_eq!(find(&ended, "tool.completed")["status"], "cancelled");
    assert_eq!(bench.post(&cancel, &json!({})).await.1["status"], "no_op");

    let first = json!({ "steps": [[bash("sleep 1", "sleep")]], "answer": "first" });
    let turn = bench.say(&session, &script(&first)).await["turn_id"].clone();
    until(&mut stream, "tool.started").await;
    let second = bench.say(&session, &script(&json!({ "answer": "second" }))).await;
    assert_eq!(second["turn_id"], turn, "it joins the turn");
    let joined = until(&mut stream, "session.idled").await;
    assert_eq!(joined.iter().filter(|frame| frame.event == "turn.completed").count(), 1);
    assert_eq!(find(&joined, "turn.completed")["final_answer_preview"], "second");
}

#[tokio::test]
async fn a_person_decides_where_the_client_can_ask_one() {
    let bench = Bench::start().await;
    let session = bench.session(&json!({ "hints": { "tool_approvals": true } })).await;
    let mut stream = bench.watch(&session, "after_sequence=0").await;
    let changes = json!({ "steps": [[bash("mkdir -p made", "mkdir")]], "answer": "done" });
    // Who rejects is asked again.
    for (word, outcome) in
        [("allow", "allow"), ("reject", "reject"), ("reject_always", "reject"), ("allow", "allow")]
    {
        bench.say(&session, &script(&changes)).await;
        let frames = until(&mut stream, "tool.approval_requested").await;
        let call = find(&frames, "tool.approval_requested")["tool_call"]["id"].clone();
        let path = format!("/sessions/{session}/tool-approvals");
        let decisions = json!({ "decisions": [{ "tool_call_id": call, "decision": word }] });
        let (status, resolved) = bench.post(&path, &decisions).await;
        assert_eq!((status, &resolved["resolved"][0]["outcome"]), (200, &json!(outcome)), "{resolved}");
        let rest = until(&mut stream, "session.idled").await;
        let completed = find(&rest, "tool.completed");
        assert_eq!(completed["success"], outcome == "allow", "{completed}");
        assert_eq!(find(&rest, "turn.completed")["final_answer_preview"], "done");
    }
}

#[tokio::test]
async fn what_fails_is_told_and_the_session_goes_on() {
    let bench = Bench::start().await;
    let session = bench.session(&json!({})).await;
    let mut stream = bench.watch(&session, "after_sequence=0").await;
    bench.say(&session, &script(&json!({ "status": 401 }))).await;
    let frames = until(&mut stream, "session.idled").await;
    let ends = ["turn.failed", "session.idled"];
    assert_eq!(names(&frames), [&BEGINS[..], &ASKS, &ends].concat());
    let failed = find(&frames, "turn.failed");
    assert_eq!(failed["error_code"], "provider_misconfigured");
    assert_eq!(failed["error_disclosure"], "standard");
    assert_eq!(failed["error_fields"], json!({ "model_id": "gpt", "provider": "openai" }));
    assert_eq!(find(&frames, "reason.completed")["success"], false);
    assert_eq!(bench.status(&session).await, "idle");

    // The provider says when it takes requests again: later than the server waits.
    bench.say(&session, &script(&json!({ "status": 429, "retry_after": 9_000_000 }))).await;
    let frames = until(&mut stream, "session.idled").await;
    let failed = find(&frames, "turn.failed");
    assert_eq!(failed["error_code"], "provider_rate_limited");
    assert_eq!(failed["error_fields"]["retry_after"], 9000);

    let once = json!({ "message": message(&script(&json!({ "answer": "well" })))["message"], "client_message_id": "m1" });
    let path = format!("/sessions/{session}/messages");
    let first = bench.post(&path, &once).await;
    assert_eq!(bench.post(&path, &once).await, first, "said once");
    let mut other = once.clone();
    other["message"]["content"][0]["text"] = json!("other");
    assert_eq!(bench.post(&path, &other).await.0, 409);
    let frames = until(&mut stream, "session.idled").await;
    assert_eq!(find(&frames, "turn.completed")["final_answer_preview"], "well");
}

#[tokio::test]
async fn a_client_hears_as_much_of_an_error_as_server_and_client_want() {
    let (openai, data) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
    let sleuth = serve(&openai, data.path()).arg("--error-disclosure").arg("detailed").start().await.unwrap();
    let bench = Bench { sleuth, openai, data };
    let session = bench.session(&json!({})).await;
    let mut said = message(&script(&json!({ "status": 401 })));
    for (asked, code) in [
        ("generic", "processing_error"),
        ("standard", "provider_misconfigured"),
        ("detailed", "provider_misconfigured"),
    ] {
        said["controls"] = json!({ "error_disclosure": asked });
        let path = format!("/sessions/{session}/messages?wait=true");
        assert_eq!(bench.post(&path, &said).await.0, 200);
        let posted = bench.get(&format!("/sessions/{session}/events?types=turn.failed&limit=1")).await.1;
        let failed = &posted["data"][0]["data"];
        assert_eq!((&failed["error_disclosure"], &failed["error_code"]), (&json!(asked), &json!(code)));
        let detail = failed["error_fields"]["detail"].as_str();
        assert_eq!(detail.is_some(), asked == "detailed", "{failed}");
    }
}

#[tokio::test]
async fn a_server_that_is_killed_goes_on_with_the_turn_when_it_is_back() {
    let mut bench = Bench::start().await;
    let session = bench.session(&json!({})).await;
    let mut stream = bench.watch(&session, "after_sequence=0").await;
    let command = bash("sleep 0.5; echo slept", "sleep");
    let steps = json!({ "steps": [[command.clone()], [command]], "answer": "found" });
    bench.say(&session, &script(&steps)).await;
    let mut frames = until(&mut stream, "tool.started").await;
    drop(stream);
    bench.sleuth.kill().await.unwrap();
    bench.sleuth = server(&bench.openai, bench.data.path()).await;
    let last = frames.last().unwrap().id.clone();
    let mut stream = bench.watch(&session, &format!("since_id={last}")).await;
    frames.extend(until(&mut stream, "session.idled").await.into_iter().skip(1));
    dense(&frames, 0);
    let count = |event: &str| frames.iter().filter(|frame| frame.event == event).count();
    assert_eq!((count("tool.started"), count("tool.completed"), count("turn.completed")), (2, 2, 1));
    assert_eq!(count("transcript.repaired"), 1);
    assert_eq!(find(&frames, "turn.completed")["final_answer_preview"], "found");
}

#[tokio::test]
async fn streams_are_counted_and_end_with_a_word_when_the_server_stops() {
    let bench = Bench::start().await;
    let session = bench.session(&json!({})).await;
    let mut streams = Vec::new();
    for _ in 0..12 {
        streams.push(bench.watch(&session, "").await);
    }
    let refused = reqwest::get(bench.url(&format!("/sessions/{session}/sse"))).await.unwrap();
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    drop(streams.pop());
    let mut stream = streams.pop().unwrap();
    let Bench { sleuth, .. } = bench;
    sleuth.stop().await.unwrap();
    let last = until(&mut stream, "disconnecting").await;
    assert_eq!(last.last().unwrap().data["reason"], "shutdown");
}

#[tokio::test]
async fn a_session_is_gone_with_its_runs() {
    let bench = Bench::start().await;
    let session = bench.session(&json!({})).await;
    let path = format!("/sessions/{session}");
    bench.post(&format!("{path}/messages?wait=true"), &message(&script(&json!({ "answer": "a" })))).await;
    let runs = async || -> Value {
        reqwest::get(bench.sleuth.url("/api/runs").unwrap()).await.unwrap().json().await.unwrap()
    };
    assert_eq!(runs().await["runs"].as_array().unwrap().len(), 1);
    let gone = reqwest::Client::new().delete(bench.url(&path)).send().await.unwrap();
    assert_eq!(gone.status(), 204);
    assert_eq!(bench.get(&path).await.0, 404);
    assert_eq!(runs().await["runs"], json!([]));
}

#[tokio::test]
async fn what_patches_write_is_told_and_stays_for_the_next_turn() {
    let bench = Bench::start().await;
    let session = bench.session(&json!({ "hints": { "tool_approvals": true, "files": true } })).await;
    let mut stream = bench.watch(&session, "after_sequence=0").await;
    let patch = json!({ "name": "patch", "args": { "patch": "*** Add File: notes.txt\n+one" } });
    bench.say(&session, &script(&json!({ "steps": [[patch]] }))).await;
    let frames = until(&mut stream, "tool.approval_requested").await;
    let call = find(&frames, "tool.approval_requested")["tool_call"]["id"].clone();
    let decisions = json!({ "decisions": [{ "tool_call_id": call, "decision": "allow" }] });
    bench.post(&format!("/sessions/{session}/tool-approvals"), &decisions).await;
    let frames = until(&mut stream, "session.idled").await;
    let written = json!({ "path": "notes.txt", "operation": "create", "size_bytes": 4, "created": true });
    assert_eq!(*find(&frames, "file.written"), written);
    let read = json!({ "name": "read", "args": { "filePath": "notes.txt" } });
    bench.say(&session, &script(&json!({ "steps": [[read]] }))).await;
    let frames = until(&mut stream, "session.idled").await;
    assert!(find(&frames, "tool.completed").to_string().contains("1\\tone"), "{:?}", names(&frames));

    bench.sleuth.lose_executor().await.unwrap();
    // Neither a turn without calls nor one without files makes it forget where they were.
    let mut without = message(&script(&json!({ "steps": [[bash("echo hi", "echo")]] })));
    without["controls"] = json!({ "hints": { "files": false } });
    for said in [message(&script(&json!({ "answer": "nothing to do" }))), without] {
        bench.post(&format!("/sessions/{session}/messages"), &said).await;
        until(&mut stream, "session.idled").await;
    }
    let mut told = Vec::new();
    for _ in 0..2 {
        bench.say(&session, &script(&json!({ "steps": [[read]] }))).await;
        let frames = until(&mut stream, "session.idled").await;
        told.push(find(&frames, "tool.completed").to_string());
    }
    assert!(told[0].contains("files of this session were"), "{told:?}");
    assert!(told[1].contains("does not exist"), "it is told once: {told:?}");
}

#[tokio::test]
async fn a_deleted_session_leaves_no_files() {
    let (openai, data) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
    let state = data.path().join("executor");
    let sleuth =
        serve(&openai, &data.path().join("data")).env("SLEUTH_EXECUTOR_STATE", &state).start().await.unwrap();
    let bench = Bench { sleuth, openai, data };
    let stuck = json!({ "name": "bash", "args": { "command": "tail -f /dev/null", "timeout": 600 } });
    let looks = json!({ "name": "bash", "args": { "command": "ls" } });
    for (call, last) in [(looks, "session.idled"), (stuck, "tool.started")] {
        let session = bench.session(&json!({ "hints": { "files": true } })).await;
        let mut stream = bench.watch(&session, "after_sequence=0").await;
        bench.say(&session, &script(&json!({ "steps": [[call]] }))).await;
        until(&mut stream, last).await;
        let state = state.as_path();
        let there = |some: bool| async move {
            while workspaces(state).is_empty() == some {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(SOON, there(true)).await.expect("it has files");
        let gone = reqwest::Client::new().delete(bench.url(&format!("/sessions/{session}"))).send().await;
        assert_eq!(gone.unwrap().status(), 204);
        timeout(SOON, there(false)).await.expect("its files go with it");
    }
}
