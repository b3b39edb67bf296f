//! Every type of session event that there is a cause for: caused, and told with what really happened.

#![cfg(test)]

use std::{collections::BTreeSet, path::Path};

use futures_util::future::{LocalBoxFuture, join_all};
use harness::{
    client::{Frame, Stream},
    models::{ScriptedAnthropic, ScriptedOpenAi},
    process::{Sleuth, Start},
    sessions::{Sessions, find, until},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Known to filters; nothing causes them yet, as `gateway/README.md` says.
const WITHOUT_CAUSE: [&str; 4] = ["output.message.replaced", "task.message.", "budget.", "voice."];
/// How often a turn may be lost that does not come further.
const LOSSES: usize = 4;

struct World {
    openai: ScriptedOpenAi,
    anthropic: ScriptedAnthropic,
    data: TempDir,
}

impl World {
    async fn start() -> Self {
        let (openai, anthropic) = tokio::join!(ScriptedOpenAi::start(), ScriptedAnthropic::start());
        Self { openai: openai.unwrap(), anthropic: anthropic.unwrap(), data: TempDir::new().unwrap() }
    }

    async fn serve(&self) -> Sleuth {
        let openai = |id: &str| json!({ "model": format!("openai/{id}"), "api_key": "none", "base_url": self.openai.url() });
        let mut small = openai("small");
        small["custom_args"] = json!({ "max_context_size": 30_000 });
        let claude =
            json!({ "model": "anthropic/claude", "api_key": "none", "base_url": self.anthropic.url() });
        let list = json!({ "gpt": openai("gpt-4.1"), "claude": claude, "small": small });
        let start =
            Start::serve().env("SLEUTH_DATA_DIR", self.data.path()).env("OVERRIDE_MAX_OUTPUT_TOKEN", "1000");
        start.models(&list.to_string()).unwrap().start().await.unwrap()
    }
}

/// A conversation, and all that was told of it.
struct Talk {
    sessions: Sessions,
    id: String,
    stream: Stream,
    frames: Vec<Frame>,
}

impl Talk {
    async fn begin(sessions: &Sessions, settings: Value) -> Self {
        let id = sessions.create(&settings).await.unwrap();
        let stream = sessions.watch(&id, "after_sequence=0").await.unwrap();
        Self { sessions: sessions.clone(), id, stream, frames: Vec::new() }
    }

    async fn say(&self, script: Value) {
        self.sessions.say(&self.id, &format!("look FAKE_LLM{script}")).await.unwrap();
    }

    async fn post(&self, path: &str, body: Value) {
        let (status, answer) =
            self.sessions.post(&format!("/sessions/{}/{path}", self.id), &body).await.unwrap();
        assert_eq!(status, 200, "{answer}");
    }

    /// Reads up to and with an event, and returns what it says.
    async fn hears(&mut self, event: &str) -> Value {
        let frames = until(&mut self.stream, event).await.unwrap();
        let said = frames.last().unwrap().data["data"].clone();
        self.frames.extend(frames);
        said
    }

    /// Says something and hears all of its turn.
    async fn turn(&mut self, script: Value) {
        self.say(script).await;
        self.hears("session.idled").await;
    }

    /// What the first event of a name says.
    fn told(&self, event: &str) -> &Value {
        find(&self.frames, event).unwrap()
    }

    /// The server is another one.
    async fn moves(&mut self, sessions: &Sessions) {
        let last = self.frames.iter().rfind(|frame| !frame.id.is_empty()).unwrap();
        self.stream = sessions.watch(&self.id, &format!("since_id={}", last.id)).await.unwrap();
        self.sessions = sessions.clone();
    }
}

fn bash(command: &str) -> Value {
    let program = command.split(' ').next();
    json!({ "name": "bash", "args": { "command": command, "suggested_prefixes": [program] } })
}

async fn thinks(sessions: Sessions) -> Vec<Frame> {
    let mut talk = Talk::begin(&sessions, json!({ "model_id": "claude" })).await;
    talk.turn(json!({ "steps": [[bash("echo one")]], "thinking": "Logs tell.", "say": "I look." })).await;
    assert_eq!(talk.told("reason.thinking.completed")["thinking"], "Logs tell.");
    let item = talk.told("reason.item");
    assert_eq!((&item["provider"], &item["summary"]), (&json!("anthropic"), &json!(["Logs tell."])));
    assert_eq!(talk.told("tool.output.delta")["delta"].as_str().map(str::trim), Some("one"));
    let used = &talk.told("capability.usage")["records"][0];
    assert_eq!((&used["tool_name"], &used["usage_count"]), (&json!("bash"), &json!(1)));
    talk.frames
}

async fn stumbles(sessions: Sessions) -> Vec<Frame> {
    let mut talk = Talk::begin(&sessions, json!({})).await;
    talk.turn(json!({ "steps": [[{ "name": "bash", "args": "{\"command\": " }]] })).await;
    let repaired = talk.told("tool.call_repaired");
    assert_eq!((&repaired["tool_name"], &repaired["outcome"]), (&json!("bash"), &json!("re-prompt")));
    talk.turn(json!({ "status": 401 })).await;
    assert_eq!(talk.told("turn.failed")["error_code"], "provider_misconfigured");
    talk.frames
}

async fn waits_for_its_client(sessions: Sessions) -> Vec<Frame> {
    let pick = json!({ "type": "client_side", "name": "pick", "description": "Picks", "parameters": { "type": "object" } });
    let hints = json!({ "tool_approvals": true, "files": true });
    let mut talk = Talk::begin(&sessions, json!({ "tools": [pick], "hints": hints })).await;
    talk.say(json!({ "steps": [[{ "name": "pick", "args": {} }]] })).await;
    let call = talk.hears("tool.call_requested").await["tool_calls"][0]["id"].clone();
    talk.post("tool-results", json!({ "tool_results": [{ "tool_call_id": call, "result": 7 }] })).await;
    talk.hears("session.idled").await;

    let patch = json!({ "name": "patch", "args": { "patch": "*** Add File: notes.txt\n+one" } });
    talk.say(json!({ "steps": [[patch]] })).await;
    let call = talk.hears("tool.approval_requested").await["tool_call"]["id"].clone();
    talk.post("tool-approvals", json!({ "decisions": [{ "tool_call_id": call, "decision": "allow" }] }))
        .await;
    talk.hears("session.idled").await;
    assert_eq!(talk.told("tool.progress")["tool_call_id"], call);
    assert_eq!(talk.told("file.written")["path"], "notes.txt");

    talk.say(json!({ "hang": true })).await;
    talk.hears("output.message.started").await;
    talk.post("cancel", Value::Null).await;
    talk.hears("session.idled").await;
    talk.told("turn.cancelled");
    talk.frames
}

async fn shares_its_work(sessions: Sessions) -> Vec<Frame> {
    let mut talk = Talk::begin(&sessions, json!({ "capabilities": [{ "ref": "subagents" }] })).await;
    let part = format!("look FAKE_LLM{}", json!({ "answer": "the part is well" }));
    talk.turn(json!({ "steps": [[{ "name": "agent", "args": { "task": part } }]] })).await;
    assert_eq!(talk.told("task.created")["task"]["state"], "running");
    talk.frames
}

async fn grows_too_long(sessions: Sessions) -> Vec<Frame> {
    let mut talk = Talk::begin(&sessions, json!({ "model_id": "small" })).await;
    let long = "words and words ".repeat(2000);
    while find(&talk.frames, "context.compacted").is_err() {
        assert!(talk.frames.iter().all(|frame| frame.event != "turn.failed"), "{:#?}", talk.frames.last());
        talk.turn(json!({ "answer": long })).await;
    }
    let (before, after) = (talk.told("context.compacting"), talk.told("context.compacted"));
    assert_eq!(before["messages_before"], after["messages_before"]);
    assert!(after["tokens_after"].as_u64() < before["tokens_before"].as_u64(), "{after}");
    talk.frames
}

/// Turns whose server is killed, again and again.
async fn loses_its_server(world: &World, mut sleuth: Sleuth) -> Vec<Frame> {
    let sessions = Sessions::of(&sleuth).unwrap();
    let mut stuck = Talk::begin(&sessions, json!({})).await;
    stuck.say(json!({ "hang": true })).await;
    stuck.hears("output.message.started").await;
    let mut working = Talk::begin(&sessions, json!({})).await;
    working.say(json!({ "steps": [[bash("sleep 10")]], "answer": "slept" })).await;
    working.hears("tool.started").await;
    for _ in 1..LOSSES {
        sleuth = replaced(world, sleuth, [&mut stuck, &mut working]).await;
        let recovered = stuck.hears("reason.recovered").await;
        assert_eq!(recovered["mode"], "restart");
        stuck.hears("output.message.started").await;
        if working.frames.iter().all(|frame| frame.event != "session.idled") {
            working.hears("session.idled").await;
        }
    }
    let _sleuth = replaced(world, sleuth, [&mut stuck, &mut working]).await;
    stuck.hears("session.idled").await;
    let sealed = stuck.told("turn.sealed");
    assert_eq!(sealed["reason"], "no_progress");
    assert_eq!(working.told("transcript.repaired")["action"], "replay");
    assert_eq!(working.told("turn.completed")["final_answer_preview"], "slept");
    [stuck.frames, working.frames].concat()
}

/// Kills a server and starts another one in its place, which the readers go to.
async fn replaced(world: &World, sleuth: Sleuth, readers: [&mut Talk; 2]) -> Sleuth {
    sleuth.kill().await.unwrap();
    let sleuth = world.serve().await;
    let sessions = Sessions::of(&sleuth).unwrap();
    for reader in readers {
        reader.moves(&sessions).await;
    }
    sleuth
}

#[tokio::test]
async fn every_type_that_there_is_a_cause_for_is_told() {
    let world = World::start().await;
    let sleuth = world.serve().await;
    let sessions = || Sessions::of(&sleuth).unwrap();
    let talks: [LocalBoxFuture<'_, _>; 5] = [
        Box::pin(thinks(sessions())),
        Box::pin(stumbles(sessions())),
        Box::pin(waits_for_its_client(sessions())),
        Box::pin(shares_its_work(sessions())),
        Box::pin(grows_too_long(sessions())),
    ];
    let mut frames = join_all(talks).await.concat();
    frames.extend(loses_its_server(&world, sleuth).await);

    // What has no id is about the connection.
    let told: BTreeSet<_> =
        frames.iter().filter(|frame| !frame.id.is_empty()).map(|frame| frame.event.as_str()).collect();
    let caused = wire::SESSION_EVENTS.iter().copied();
    let caused = caused.filter(|name| !WITHOUT_CAUSE.iter().any(|other| name.starts_with(other)));
    assert_eq!(told, caused.collect());
}

#[test]
fn what_has_no_cause_is_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("gateway/README.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, listed) = page.split_once("Not emitted yet, but known to filters: ").unwrap();
    let (listed, _) = listed.split_once(". ").unwrap();
    let names: Vec<_> = listed.split(", ").map(|name| name.trim_matches(['`', '*'])).collect();
    assert_eq!(names, WITHOUT_CAUSE);
}
