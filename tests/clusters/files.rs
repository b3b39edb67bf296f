//! Agents that work on files or by code: at one cluster, which whoever asks names.

use harness::process::{Sleuth, Start};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::world::{Bench, SOON, key};

/// A gateway, and who asks there.
struct Door {
    gateway: Sleuth,
    client: Client,
    key: Option<String>,
}

impl Door {
    async fn of(hub: &Sleuth) -> Self {
        let start = Start::new(["gateway", "--http", "127.0.0.1:0", "--agent", &hub.grpc().unwrap()]);
        Self { gateway: start.start().await.unwrap(), client: Client::new(), key: None }
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, String) {
        self.send(self.client.post(self.gateway.url(path).unwrap()).json(body)).await
    }

    async fn send(&self, request: RequestBuilder) -> (u16, String) {
        let request = match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        let answer = request.timeout(SOON).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    async fn session(&self, hints: Value) -> String {
        let (status, made) = self.post("/v1/sessions", &json!({ "hints": hints })).await;
        assert_eq!(status, 201, "{made}");
        serde_json::from_str::<Value>(&made).unwrap()["id"].as_str().unwrap().to_owned()
    }

    /// Says something in a session; all that it came to.
    async fn say(&self, session: &str, script: &Value, hints: Value) -> String {
        let said = json!([{ "type": "text", "text": format!("look FAKE_LLM{script}") }]);
        let body = json!({ "message": { "content": said }, "controls": { "hints": hints } });
        let path = format!("/v1/sessions/{session}");
        let (status, answer) = self.post(&format!("{path}/messages?wait=true&timeout_ms=60000"), &body).await;
        assert!(status < 300, "{status}: {answer}");
        self.send(self.client.get(self.gateway.url(&format!("{path}/events")).unwrap())).await.1
    }
}

fn calling(name: &str, arguments: &Value) -> Value {
    json!({ "steps": [[{ "name": name, "args": arguments }]], "answer": "done" })
}

/// A body of the harness dialect.
fn chat(mode: &str, cluster: Option<&str>) -> Value {
    let script = match mode {
        "rlm" => {
            let code = "const seen = await exec('printenv WHERE'); FINAL(seen.stdout)";
            calling("repl", &json!({ "code": code }))
        }
        _ => calling("bash", &json!({ "command": "printenv WHERE" })),
    };
    let messages = json!([{ "role": "user", "content": format!("look FAKE_LLM{script}") }]);
    let permissions = json!({ "allowlist": ["bash", "exec"] });
    json!({ "messages": messages, "mode": mode, "cluster": cluster, "permissions": permissions })
}

#[tokio::test]
async fn files_and_code_are_at_the_cluster_that_is_named() {
    let mut bench = Bench::start(&[]).await;
    let _executors = bench.connect(&["eu", "us"]).await;
    let mut door = Door::of(&bench.hub).await;
    let command = calling("bash", &json!({ "command": "printenv WHERE" }));
    for mode in ["agent", "rlm"] {
        for (cluster, other) in [("eu", "at-us"), ("us", "at-eu")] {
            let (status, seen) = door.post("/chat", &chat(mode, Some(cluster))).await;
            let is_there = seen.contains(&format!("at-{cluster}")) && !seen.contains(other);
            assert!(status == 200 && is_there, "{mode} at {cluster}: {status} {seen}");
        }
        let (status, unnamed) = door.post("/chat", &chat(mode, None)).await;
        assert!(status == 400 && unnamed.contains("eu, us"), "{mode}: {status} {unnamed}");
        let (status, unknown) = door.post("/chat", &chat(mode, Some("mars"))).await;
        assert!(status == 404 && unknown.contains("mars"), "{mode}: {status} {unknown}");
    }

    let session = door.session(json!({ "files": true, "cluster": "eu" })).await;
    let seen = door.say(&session, &command, json!({})).await;
    assert!(seen.contains("at-eu") && !seen.contains("at-us"), "{seen}");
    let session = door.session(json!({ "cluster": "eu" })).await;
    let seen = door.say(&session, &command, json!({ "files": true, "cluster": "us" })).await;
    assert!(seen.contains("at-us") && !seen.contains("at-eu"), "{seen}");

    // A key that is for other clusters names no more than it may ask about.
    door.key = Some(key(&bench.hub, &["eu", "asia"], false).await);
    for mode in ["agent", "rlm"] {
        let (status, refused) = door.post("/chat", &chat(mode, Some("us"))).await;
        assert!(status == 403 && refused.contains("`us`"), "{mode}: {status} {refused}");
        let (status, seen) = door.post("/chat", &chat(mode, Some("eu"))).await;
        assert!(status == 200 && seen.contains("at-eu"), "{mode}: {status} {seen}");
    }
    let session = door.session(json!({ "files": true, "cluster": "us" })).await;
    let refused = door.say(&session, &command, json!({})).await;
    assert!(refused.contains("turn.failed") && !refused.contains("at-us"), "{refused}");
}
