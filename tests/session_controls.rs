//! What a message says beside its text: how it is to be answered, by whom it is, what it belongs to. And what readers may
//! ask for.

#![cfg(test)]

use harness::{
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
    sessions::{Sessions, find, names, until},
};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Bench {
    _sleuth: Sleuth,
    openai: ScriptedOpenAi,
    sessions: Sessions,
    _data: TempDir,
}

impl Bench {
    async fn start() -> Self {
        let (openai, data) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
        let entry = |id: &str| json!({ "model": format!("openai/{id}"), "api_key": "none", "base_url": openai.url() });
        let list = json!({ "usual": entry("gpt-4.1"), "other": entry("gpt-5") });
        let start = Start::serve().env("SLEUTH_DATA_DIR", data.path()).models(&list.to_string()).unwrap();
        let sleuth = start.start().await.unwrap();
        Self { sessions: Sessions::of(&sleuth).unwrap(), _sleuth: sleuth, openai, _data: data }
    }

    async fn say(&self, session: &str, body: &Value) -> Value {
        let (status, said) =
            self.sessions.post(&format!("/sessions/{session}/messages"), body).await.unwrap();
        assert_eq!(status, 201, "{said}");
        said
    }

    /// What the model was asked last.
    fn asked(&self) -> Value {
        self.openai.requests().last().unwrap().body.clone()
    }
}

/// A message whose answer follows a script, with more beside it.
fn message(script: &Value, more: Value) -> Value {
    let mut body = harness::sessions::message(&format!("look FAKE_LLM{script}"));
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    body
}

#[tokio::test]
async fn a_message_says_how_it_is_answered_and_the_next_one_is_answered_as_usual() {
    let bench = Bench::start().await;
    let settings = json!({ "model_id": "usual", "locale": "de-DE", "hints": { "files": true, "tool_approvals": false } });
    let session = bench.sessions.create(&settings).await.unwrap();
    let mut stream = bench.sessions.watch(&session, "after_sequence=0").await.unwrap();
    let change = json!({ "name": "bash", "args": { "command": "mkdir made" } });
    let script = json!({ "steps": [[change]], "answer": "done" });

    let controls = json!({
        "model_id": "other", "reasoning": { "effort": "high" }, "locale": "uk-UA", "hints": { "tool_approvals": true },
    });
    let said = bench.say(&session, &message(&script, json!({ "controls": controls }))).await;
    assert_eq!(said["controls"]["hints"], controls["hints"]);
    let frames = until(&mut stream, "tool.approval_requested").await.unwrap();
    let asked = bench.asked();
    assert_eq!((&asked["model"], &asked["reasoning_effort"]), (&json!("gpt-5"), &json!("high")));
    let system = asked["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("`uk-UA`") && !system.contains("`de-DE`"), "{system}");
    // The hint that the message does not speak of is the session's: only with files is there a patch.
    let offered: Vec<_> =
        asked["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str()).collect();
    assert!(offered.contains(&Some("patch")), "{offered:?}");
    let call = &find(&frames, "tool.approval_requested").unwrap()["tool_call"]["id"];
    let decisions = json!({ "decisions": [{ "tool_call_id": call, "decision": "reject" }] });
    bench.sessions.post(&format!("/sessions/{session}/tool-approvals"), &decisions).await.unwrap();
    until(&mut stream, "session.idled").await.unwrap();

    bench.say(&session, &message(&script, json!({}))).await;
    let frames = until(&mut stream, "session.idled").await.unwrap();
    assert!(
        !names(&frames).contains(&"tool.approval_requested"),
        "nobody is asked unless the message says so"
    );
    assert_eq!(find(&frames, "tool.completed").unwrap()["success"], false);
    let asked = bench.asked();
    assert_eq!((&asked["model"], asked.get("reasoning_effort")), (&json!("gpt-4.1"), None));
    assert!(asked["messages"][0]["content"].as_str().unwrap().contains("`de-DE`"));

    let path = format!("/sessions/{session}/messages");
    let unknown = message(&script, json!({ "controls": { "model_id": "nobody" } }));
    let (status, problem) = bench.sessions.post(&path, &unknown).await.unwrap();
    assert_eq!(status, 400, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(["nobody", "usual", "other"].iter().all(|name| detail.contains(name)), "{detail}");
}

#[tokio::test]
async fn what_a_message_and_a_session_are_labelled_with_stays_with_them() {
    let bench = Bench::start().await;
    let labels = json!({ "title": "shop", "tags": ["incident"], "metadata": { "ticket": 7 } });
    let session = bench.sessions.create(&labels).await.unwrap();
    let mut stream = bench.sessions.watch(&session, "after_sequence=0").await.unwrap();
    let actor = json!({
        "actor_id": "U1", "source": "slack", "actor_name": "Ada", "metadata": { "team": "shop" },
    });
    let more = json!({ "external_actor": actor, "metadata": { "thread": "t1" }, "tags": ["first"] });
    let said = bench.say(&session, &message(&json!({ "answer": "well" }), more.clone())).await;
    let frames = until(&mut stream, "session.idled").await.unwrap();
    let event = &frames.iter().find(|frame| frame.event == "input.message").unwrap().data;
    let (_, listed) = bench.sessions.get(&format!("/sessions/{session}/messages")).await.unwrap();
    for message in [&said, &event["data"]["message"], &listed["data"][0]] {
        for (name, value) in more.as_object().unwrap() {
            assert_eq!(&message[name], value, "{message}");
        }
    }
    assert_eq!(event["tags"], json!(["first"]));

    let path = format!("/sessions/{session}");
    let change = json!({ "tags": ["solved"] });
    let (status, _) = bench.sessions.ask(reqwest::Method::PATCH, &path, Some(&change)).await.unwrap();
    assert_eq!(status, 200);
    let (_, described) = bench.sessions.get(&path).await.unwrap();
    assert_eq!((&described["title"], &described["metadata"]), (&labels["title"], &labels["metadata"]));
    assert_eq!(described["tags"], change["tags"]);
    assert_eq!(described["usage"], find(&frames, "session.idled").unwrap()["usage"]);
    let (_, sessions) = bench.sessions.get("/sessions").await.unwrap();
    assert_eq!(sessions["data"], json!([described]));
}

#[tokio::test]
async fn readers_choose_events_within_limits() {
    let bench = Bench::start().await;
    let session = bench.sessions.create(&json!({})).await.unwrap();
    let named = |parameter: &str, names: &[&str]| -> String {
        names.iter().map(|name| format!("{parameter}={name}&")).collect()
    };
    let all = wire::SESSION_EVENTS;
    let most = [&all[..], &all[..64 - all.len()]].concat();
    let many = [&most[..], &["turn.started"]].concat();
    for path in ["sse", "events"] {
        let ask = async |query: String| {
            let url = bench.sessions.url(&format!("/sessions/{session}/{path}?{query}"));
            reqwest::get(url).await.unwrap()
        };
        assert_eq!(ask(named("types", &most)).await.status(), 200);
        for (query, detail) in [
            (named("types", &many), "types: 65 event types, and at most 64 may be named"),
            (named("exclude", &many), "exclude: 65 event types, and at most 64 may be named"),
            (named("exclude", &["turn.done"]), "exclude: unknown event type 'turn.done'"),
        ] {
            let refused = ask(query).await;
            assert_eq!(refused.headers()["content-type"], "application/problem+json");
            let problem: Value = refused.json().await.unwrap();
            assert_eq!((&problem["status"], &problem["detail"]), (&json!(400), &json!(detail)));
        }
    }
}
