//! Two gateways, each before an agent of its own: it does not matter which of them a client speaks to.

use grants::SigningKey;
use harness::{
    models::ScriptedOpenAi,
    postgres::Postgres,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bench::{Chat, answer, asking, bash, call, list, steps};

const KEY: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE";

struct World {
    gateways: [Sleuth; 2],
    openai: ScriptedOpenAi,
    agents: Vec<Sleuth>,
    executors: Vec<Sleuth>,
    folder: TempDir,
    _postgres: Postgres,
}

/// An executor at a socket in a folder.
async fn executor(folder: &TempDir) -> Sleuth {
    let public = KEY.parse::<SigningKey>().unwrap().public().to_string();
    let start = Start::new(["executor", "--listen", &socket(folder)]).env("SLEUTH_GRANT_KEYS", public);
    start.env("SLEUTH_EXECUTOR_STATE", folder.path().join("state")).start().await.unwrap()
}

fn socket(folder: &TempDir) -> String {
    format!("unix:{}", folder.path().join("executor").display())
}

impl World {
    async fn start() -> Option<Self> {
        let postgres = Postgres::start().await.unwrap()?;
        let store = postgres.database("relays").await.unwrap();
        let openai = ScriptedOpenAi::start().await.unwrap();
        let folder = TempDir::new().unwrap();
        let (executors, at) = (vec![executor(&folder).await], socket(&folder));
        let agent = || {
            let start = Start::new(["agent", "--grpc", "127.0.0.1:0", "--executor", &at]);
            start.env("SLEUTH_STORE", &store).models(&list(&openai)).unwrap().start()
        };
        let agents = vec![agent().await.unwrap(), agent().await.unwrap()];
        let gateway = |agent: &Sleuth| {
            let agent = agent.grpc().unwrap();
            let start = Start::new(["gateway", "--http", "127.0.0.1:0", "--agent", &agent]);
            start.env("SLEUTH_SIGNING_KEY", KEY).start()
        };
        let gateways = [gateway(&agents[0]).await.unwrap(), gateway(&agents[1]).await.unwrap()];
        Some(Self { gateways, openai, agents, executors, folder, _postgres: postgres })
    }

    fn url(&self, replica: usize) -> String {
        self.gateways[replica].url("").unwrap()
    }
}

fn not_there(what: &str) -> (u16, Value) {
    (404, json!({"error": format!("{what} not found")}))
}

fn yes() -> Value {
    json!({"approved": true})
}

#[tokio::test]
async fn a_relay_is_answered_at_the_other_replica_once() {
    let Some(world) = World::start().await else { return };
    let (here, there) = (world.url(0), world.url(1));
    let body = asking(&steps(&["mkdir one", "mkdir two"]), json!({}));
    let mut chat = Chat::open(&here, &body).await;
    let mut other = Chat::open(&there, &body).await;
    let first = chat.until("relay").await.unwrap()["id"].as_str().unwrap().to_owned();
    other.until("relay").await.unwrap();
    let (session, others) = (chat.session().to_owned(), other.session().to_owned());

    assert_eq!(answer(&here, &others, &first, yes()).await, not_there("Relay"), "of another session");
    assert_eq!(answer(&there, &session, &first, yes()).await, (200, json!({"success": true})));
    for base in [&here, &there] {
        assert_eq!(answer(base, &session, &first, yes()).await, not_there("Relay"), "answered before");
        let no = json!({"approved": false});
        assert_eq!(answer(base, &session, &first, no).await, not_there("Relay"));
    }
    // The stream goes on at the other replica, too, and is the same.
    let mut chat = chat.back(&there, &body).await;
    let second = chat.until("relay").await.unwrap();
    let no = json!({"approved": false, "reason": "one is enough"});
    assert_eq!(answer(&here, &session, second["id"].as_str().unwrap(), no).await.0, 200);
    chat.end().await;
    let outputs = chat.outputs();
    assert_eq!(outputs[0]["result"]["exitCode"], 0, "{outputs:?}");
    assert_eq!(*outputs[1], json!({"status": "denied", "reason": "one is enough"}));
    let ids: std::collections::HashSet<_> =
        chat.seen.iter().filter(|frame| frame.event != "harness_end").map(|frame| &frame.id).collect();
    assert_eq!(ids.len(), chat.seen.len() - 1, "nothing came twice");
    for base in [&here, &there] {
        assert_eq!(answer(base, &session, &first, yes()).await, not_there("Session"));
    }
    assert!(world.openai.requests().len() >= 3);
}

#[tokio::test]
async fn relays_of_many_agents_are_answered_crosswise() {
    let Some(world) = World::start().await else { return };
    let (here, there) = (world.url(0), world.url(1));
    let part = |command: &str| {
        let script = json!({"steps": [[bash(command)]], "answer": command});
        call("agent", json!({"task": format!("look FAKE_LLM{script}")}))
    };
    let parts = ["mkdir a", "mkdir b", "mkdir c", "echo quiet"].map(part);
    let mut chat = Chat::open(&here, &asking(&json!({"steps": [parts], "answer": "all"}), json!({}))).await;
    while chat.all("relay").len() < 3 || chat.all("harness_end").is_empty() {
        chat.next().await.expect("three relays, and the end of the agent that asks nobody");
    }
    let session = chat.session().to_owned();
    let relays: Vec<String> =
        chat.all("relay").iter().map(|relay| relay["id"].as_str().unwrap().to_owned()).collect();
    let answers = relays.iter().zip([&there, &here, &there]).map(|(relay, base)| {
        let session = &session;
        async move { answer(base, session, relay, yes()).await.0 }
    });
    assert_eq!(futures_util::future::join_all(answers).await, [200; 3]);
    chat.end().await;
    let made = |output: &&&Value| output["result"]["exitCode"] == 0;
    assert_eq!(chat.outputs().iter().filter(made).count(), 4, "{:?}", chat.outputs());
    assert_eq!(chat.all("harness_end").len(), 5);
}

#[tokio::test]
async fn whoever_takes_a_run_over_says_that_its_files_are_lost() {
    let Some(mut world) = World::start().await else { return };
    let body = asking(&steps(&["mkdir kept", "touch kept/a", "ls"]), json!({}));
    let mut chat = Chat::open(&world.url(0), &body).await;
    let first = chat.until("relay").await.unwrap();
    let session = chat.session().to_owned();
    assert_eq!(answer(&world.url(0), &session, first["id"].as_str().unwrap(), yes()).await.0, 200);
    let second = chat.until("relay").await.unwrap();

    world.agents.remove(0).kill().await.unwrap();
    world.executors.remove(0).kill().await.unwrap();
    world.executors.push(executor(&world.folder).await);
    let there = world.url(1);
    let mut chat = chat.back(&there, &body).await;
    assert_eq!(answer(&there, &session, second["id"].as_str().unwrap(), yes()).await.0, 200);
    chat.end().await;
    let outputs = chat.outputs();
    assert!(outputs[1]["error"].as_str().unwrap().contains("files of this session were"), "{outputs:?}");
    assert_eq!(outputs[2]["result"]["stdout"], "", "it begins anew: {outputs:?}");
}
