//! A turn that waits for its client: a result, a new message, a cancellation and the time race, and one of them wins.

#![cfg(test)]

use std::time::Duration;

use futures_util::future::join_all;
use harness::{
    client::{Frame, Stream},
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
    sessions::{Sessions, find, message, names, until},
};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Bench {
    _sleuth: Sleuth,
    openai: ScriptedOpenAi,
    sessions: Sessions,
    _data: TempDir,
}

/// A turn that waits for the result of a call.
struct Waiting {
    session: String,
    stream: Stream,
    call: Value,
}

impl Bench {
    /// A server with a variable set.
    async fn with(variable: &str, value: &str) -> Self {
        let (openai, data) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
        let list =
            format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
        let start = Start::serve().env("SLEUTH_DATA_DIR", data.path()).env(variable, value);
        let sleuth = start.models(&list).unwrap().start().await.unwrap();
        Self { sessions: Sessions::of(&sleuth).unwrap(), _sleuth: sleuth, openai, _data: data }
    }

    async fn start() -> Self {
        Self::with("SLEUTH_CLIENT_TOOL_SECONDS", "300").await
    }

    async fn waiting(&self) -> Waiting {
        let parameters = json!({ "type": "object" });
        let pick = json!({ "type": "client_side", "name": "pick", "description": "Picks", "parameters": parameters });
        let session = self.sessions.create(&json!({ "tools": [pick] })).await.unwrap();
        let mut stream = self.sessions.watch(&session, "after_sequence=0").await.unwrap();
        let asks = json!({ "steps": [[{ "name": "pick", "args": {} }]], "answer": "done" });
        self.sessions.say(&session, &format!("look FAKE_LLM{asks}")).await.unwrap();
        let frames = until(&mut stream, "tool.call_requested").await.unwrap();
        let call = find(&frames, "tool.call_requested").unwrap()["tool_calls"][0]["id"].clone();
        Waiting { session, stream, call }
    }

    async fn status(&self, session: &str) -> Value {
        self.sessions.get(&format!("/sessions/{session}")).await.unwrap().1["status"].clone()
    }

    async fn bring(&self, waiting: &Waiting, result: u64) -> u16 {
        let results = json!({ "tool_results": [{ "tool_call_id": waiting.call, "result": result }] });
        let path = format!("/sessions/{}/tool-results", waiting.session);
        self.sessions.post(&path, &results).await.unwrap().0
    }

    async fn cancel(&self, session: &str) -> Value {
        let path = format!("/sessions/{session}/cancel");
        let (status, answer) = self.sessions.post(&path, &Value::Null).await.unwrap();
        assert_eq!(status, 200, "{answer}");
        answer["status"].clone()
    }
}

fn completed(frames: &[Frame]) -> Vec<&Value> {
    let completed = frames.iter().filter(|frame| frame.event == "tool.completed");
    completed.map(|frame| &frame.data["data"]["status"]).collect()
}

#[tokio::test]
async fn one_of_many_results_counts() {
    let bench = Bench::start().await;
    let mut waiting = bench.waiting().await;
    let statuses = join_all((0..8).map(|result| bench.bring(&waiting, result))).await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| matches!(status, 200 | 409)), "{statuses:?}");
    let frames = until(&mut waiting.stream, "session.idled").await.unwrap();
    assert_eq!(completed(&frames), ["success"]);
    let winner = statuses.iter().position(|status| *status == 200).unwrap();
    let shown = &find(&frames, "tool.completed").unwrap()["result"][0]["text"];
    assert_eq!(*shown, json!(winner.to_string()));
    assert_eq!(bench.openai.requests().len(), 2, "the model was told once");
}

#[tokio::test]
async fn a_result_that_does_not_come_is_late() {
    let bench = Bench::with("SLEUTH_CLIENT_TOOL_SECONDS", "1").await;
    let mut waiting = bench.waiting().await;
    let frames = until(&mut waiting.stream, "session.idled").await.unwrap();
    assert_eq!(completed(&frames), ["timeout"]);
    assert_eq!(find(&frames, "turn.completed").unwrap()["final_answer_preview"], "done");
    assert_eq!(bench.bring(&waiting, 1).await, 409);
}

#[tokio::test]
async fn what_waits_can_be_stopped_any_number_of_times() {
    let bench = Bench::start().await;
    let mut waiting = bench.waiting().await;
    assert_eq!(bench.status(&waiting.session).await, "waitingfortoolresults");
    let answers = join_all((0..4).map(|_| bench.cancel(&waiting.session))).await;
    assert!(answers.contains(&json!("cancelled")), "{answers:?}");
    let frames = until(&mut waiting.stream, "session.idled").await.unwrap();
    assert_eq!(completed(&frames), ["cancelled"]);
    assert_eq!(names(&frames).iter().filter(|name| **name == "turn.cancelled").count(), 1);
    assert_eq!(bench.cancel(&waiting.session).await, "no_op");
    assert_eq!(bench.bring(&waiting, 1).await, 409);
    // A session that never had a turn has nothing to stop.
    let fresh = bench.sessions.create(&json!({})).await.unwrap();
    assert_eq!(bench.cancel(&fresh).await, "no_op");
}

#[tokio::test]
async fn a_new_message_and_a_result_race_and_nothing_is_lost() {
    let bench = Bench::start().await;
    for _ in 0..4 {
        let mut waiting = bench.waiting().await;
        let path = format!("/sessions/{}/messages", waiting.session);
        let script = json!({ "answer": "never mind" });
        let new = message(&format!("rather FAKE_LLM{script}"));
        let (status, said) = tokio::join!(bench.bring(&waiting, 7), bench.sessions.post(&path, &new));
        let (posted, said) = said.unwrap();
        assert_eq!(posted, 201, "{said}");
        let mut frames = until(&mut waiting.stream, "session.idled").await.unwrap();
        if !frames
            .iter()
            .any(|frame| frame.event == "input.message" && frame.data["data"]["message"]["id"] == said["id"])
        {
            frames.extend(until(&mut waiting.stream, "session.idled").await.unwrap());
        }
        // The call ended once, as the winner says.
        let ended = completed(&frames);
        assert_eq!(ended.len(), 1, "{ended:?}");
        assert!(
            matches!((status, ended[0].as_str().unwrap()), (200, _) | (409, "cancelled")),
            "{status} {ended:?}"
        );
        // And what was said is answered.
        let last = frames.iter().rfind(|frame| frame.event == "output.message.completed").unwrap();
        assert_eq!(last.data["data"]["message"]["content"][0]["text"], "never mind");
        while bench.status(&waiting.session).await != "idle" {
            until(&mut waiting.stream, "session.idled").await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_stream_without_news_says_that_it_is_there() {
    let bench = Bench::start().await;
    let session = bench.sessions.create(&json!({})).await.unwrap();
    let mut stream = reqwest::get(bench.sessions.url(&format!("/sessions/{session}/sse"))).await.unwrap();
    let mut told = Vec::new();
    let hears = async {
        while !told.ends_with(b": heartbeat\nretry: 500\n") {
            told.extend(stream.chunk().await.unwrap().expect("it goes on"));
        }
    };
    tokio::time::timeout(Duration::from_secs(90), hears).await.expect("it is silent");
    let connected = "event: connected\ndata: {\"status\":\"connected\"}\nretry: 100\n\n";
    assert!(told.starts_with(connected.as_bytes()), "{}", String::from_utf8_lossy(&told));
}

#[tokio::test]
async fn a_stream_ends_now_and_then_and_its_reader_comes_back() {
    let bench = Bench::with("SLEUTH_STREAM_SECONDS", "1").await;
    let session = bench.sessions.create(&json!({})).await.unwrap();
    let mut stream = bench.sessions.watch(&session, "after_sequence=0").await.unwrap();
    let frames = until(&mut stream, "disconnecting").await.unwrap();
    let last = frames.last().unwrap();
    assert_eq!((&last.data["reason"], last.id.as_str()), (&json!("connection_cycle"), ""));
    assert!(stream.next().await.unwrap().is_none(), "nothing follows");
    bench.sessions.say(&session, "hello").await.unwrap();
    let mut seen = Vec::new();
    let mut after = 0;
    while !seen.contains(&"session.idled".to_owned()) {
        let mut stream = bench.sessions.watch(&session, &format!("after_sequence={after}")).await.unwrap();
        while let Some(frame) = stream.next().await.unwrap() {
            if let Some(sequence) = frame.data["sequence"].as_u64() {
                assert_eq!(sequence, after + 1, "no gap, no repeat");
                after = sequence;
                seen.push(frame.event);
            }
        }
    }
}
