//! A server with two accounts, and keys of every kind.

use std::ffi::OsString;

use harness::{
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Somebody who has no business with the account `acme`.
pub(crate) struct Intruder {
    pub(crate) name: &'static str,
    pub(crate) key: String,
}

pub(crate) struct World {
    pub(crate) openai: ScriptedOpenAi,
    /// A key of `acme` that may ask, and its id.
    pub(crate) victim: String,
    pub(crate) victim_id: String,
    /// A key of `acme` that may only look.
    pub(crate) reader: String,
    /// A key of `acme` for one cluster.
    pub(crate) limited: String,
    pub(crate) intruders: Vec<Intruder>,
    admin: String,
    pub(crate) sleuth: Sleuth,
    pub(crate) data: TempDir,
    client: Client,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    pub(crate) async fn with(flags: &[&str]) -> Self {
        let data = TempDir::new().unwrap();
        let key = async |arguments: &[&str]| {
            let mut all = vec!["keys", "create"];
            all.extend(arguments);
            let made = program(&data, &all, &[]).await;
            (made["secret"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
        };
        for account in ["acme", "rival", "gone"] {
            program(&data, &["accounts", "create", account], &[]).await;
        }
        let (victim, victim_id) = key(&["--account", "acme"]).await;
        let reader = key(&["--account", "acme", "--scope", "robusta_ai:read"]).await.0;
        let limited = key(&["--account", "acme", "--cluster", "lab"]).await.0;
        let admin = key(&["--scope", "admin:write"]).await.0;
        let (revoked, revoked_id) = key(&["--account", "acme"]).await;
        program(&data, &["keys", "revoke", &revoked_id], &[]).await;
        let all = ["robusta_ai:write", "robusta_ai:read", "audit:read", "metrics:read"];
        let scopes: Vec<_> = all.iter().flat_map(|scope| ["--scope", *scope]).collect();
        let of_rival = [&["--account", "rival"], &scopes[..]].concat();
        let intruders = vec![
            Intruder { name: "a rival", key: key(&of_rival).await.0 },
            Intruder {
                name: "a rival who may look",
                key: key(&["--account", "rival", "--scope", "robusta_ai:read"]).await.0,
            },
            Intruder { name: "the default account", key: key(&scopes).await.0 },
            Intruder { name: "a revoked key", key: revoked },
            Intruder { name: "an account that is off", key: key(&["--account", "gone"]).await.0 },
            Intruder {
                name: "a cluster that is to join",
                key: key(&["--account", "acme", "--cluster", "lab", "--join"]).await.0,
            },
            Intruder { name: "a guess", key: format!("slk_{victim_id}_{}", "0".repeat(64)) },
            Intruder { name: "nobody", key: String::new() },
        ];
        program(&data, &["accounts", "disable", "gone"], &[]).await;
        let openai = ScriptedOpenAi::start().await.unwrap();
        let model = |name: &str, id: &str| {
            format!("{name}:\n  model: openai/{id}\n  api_key: sk-test\n  base_url: {}\n", openai.url())
        };
        let list = model("gpt", "gpt-4.1") + &model("small", "gpt-4.1-mini");
        let mut start = Start::serve().models(&list).unwrap().env("SLEUTH_DATA_DIR", data.path());
        for flag in ["--require-keys", "--cluster-name", "lab"].iter().chain(flags) {
            start = start.arg(flag);
        }
        let sleuth = start.start().await.unwrap();
        Self {
            openai,
            victim,
            victim_id,
            reader,
            limited,
            intruders,
            admin,
            sleuth,
            data,
            client: Client::new(),
        }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        key: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Response {
        let mut request = self.client.request(method, self.sleuth.url(path).unwrap());
        if !key.is_empty() {
            request = request.bearer_auth(key);
        }
        if !body.is_null() {
            request = request.json(body);
        }
        headers
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value))
            .send()
            .await
            .unwrap()
    }

    pub(crate) async fn get(&self, path: &str, key: &str) -> Response {
        self.send(Method::GET, path, key, &Value::Null, &[]).await
    }

    pub(crate) async fn status(&self, path: &str, key: &str) -> u16 {
        self.get(path, key).await.status().as_u16()
    }

    pub(crate) async fn admin(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let response = self.send(method, path, &self.admin, body, &[]).await;
        (response.status().as_u16(), response.json().await.unwrap())
    }

    pub(crate) async fn robusta(&self, account: &str, key: &str, body: &Value) -> (u16, Value) {
        let response = self.send(Method::POST, &format!("/api/holmes/{account}/chat"), key, body, &[]).await;
        (response.status().as_u16(), response.json().await.unwrap())
    }

    pub(crate) async fn robusta_stream(
        &self,
        account: &str,
        key: &str,
        body: &Value,
    ) -> Vec<(String, Value)> {
        let response = self.send(Method::POST, &format!("/api/holmes/{account}/chat"), key, body, &[]).await;
        frames(&response.text().await.unwrap())
    }

    /// A run of `acme` that waits for an approval: its conversation, and the call.
    pub(crate) async fn waiting(&self) -> (Value, String) {
        let calls = json!([[{ "name": "bash", "args": {
            "command": "mkdir -p approved", "suggested_prefixes": ["mkdir"] } }]]);
        let script = json!({ "steps": calls, "answer": "done" });
        let body = json!({
            "ask": format!("change FAKE_LLM{script}"), "stream": true, "enable_tool_approval": true,
        });
        let frames = self.robusta_stream("acme", &self.victim, &body).await;
        let (event, data) = frames.last().unwrap();
        assert_eq!(event, "approval_required", "{frames:?}");
        let history = data["conversation_history"].clone();
        let calls = history
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|message| message["tool_calls"].as_array())
            .flatten();
        let mut waiting = calls.filter(|call| call["pending_approval"] == true);
        let call = waiting.next().unwrap()["id"].as_str().unwrap().to_owned();
        (history, call)
    }

    /// Where the run was asked for that ends, with which key, and what.
    pub(crate) fn keyed() -> (&'static str, &'static str, Value) {
        ("/api/chat", "mine", json!({ "ask": "what FAKE_LLM{}" }))
    }

    /// Runs of `acme`: one that has ended, one that goes on, one that waits.
    pub(crate) async fn victims_runs(&self) -> Vec<String> {
        let (route, key, question) = Self::keyed();
        let ended =
            self.send(Method::POST, route, &self.victim, &question, &[("idempotency-key", key)]).await;
        let hanging = json!({ "ask": r#"what FAKE_LLM{"hang": true}"#, "stream": true });
        let going_on = self.send(Method::POST, "/api/chat", &self.victim, &hanging, &[]).await;
        let ids = [&ended, &going_on]
            .map(|answer| answer.headers()["x-sleuth-run-id"].to_str().unwrap().to_owned());
        // Its reader stays, so that it goes on.
        std::mem::forget(going_on);
        self.waiting().await;
        let listed: Value = self.get("/api/runs", &self.victim).await.json().await.unwrap();
        let waits =
            listed["runs"].as_array().unwrap().iter().find(|run| run["state"] == "suspended").unwrap();
        [ids.to_vec(), vec![waits["run_id"].as_str().unwrap().to_owned()]].concat()
    }

    /// The runs are as they were.
    pub(crate) async fn is_untouched(&self, runs: &[String]) {
        let mut states = Vec::new();
        for run in runs {
            let run: Value = self.get(&format!("/api/runs/{run}"), &self.victim).await.json().await.unwrap();
            states.push(run["state"].as_str().unwrap().to_owned());
        }
        assert_eq!(states, ["finished", "running", "suspended"]);
    }

    pub(crate) async fn get_as_admin(&self, path: &str) -> u16 {
        self.status(path, &self.admin).await
    }

    /// The trail over HTTP, as a query narrows it down.
    pub(crate) async fn audit(&self, query: &str) -> Vec<Value> {
        let path = format!("/api/admin/audit?account={query}");
        lines(&self.get(&path, &self.admin).await.text().await.unwrap())
    }

    /// The same by `sleuth audit`, as flags do.
    pub(crate) async fn audit_by_command(&self, flags: &[&str]) -> Vec<Value> {
        let server = self.sleuth.grpc().unwrap();
        let variables = [("SLEUTH_SERVER", server.as_str()), ("SLEUTH_API_KEY", &self.admin)];
        lines(&said(&self.data, &[&["audit"], flags].concat(), &variables).await)
    }

    /// What a command of an administrator says, beside the running server.
    pub(crate) async fn operator(&self, arguments: &[&str]) -> Value {
        let server = self.sleuth.grpc().unwrap();
        program(&self.data, arguments, &[("SLEUTH_SERVER", &server), ("SLEUTH_API_KEY", &self.admin)]).await
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs the program and reads the JSON that it prints.
async fn program(data: &TempDir, arguments: &[&str], variables: &[(&str, &str)]) -> Value {
    serde_json::from_str(&said(data, arguments, variables).await).unwrap()
}

/// What the program prints.
async fn said(data: &TempDir, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let arguments = arguments.iter().chain(&["--json"]).map(OsString::from);
    let mut start = Start::new(arguments).env("SLEUTH_DATA_DIR", data.path());
    for (name, value) in variables {
        start = start.env(name, *value);
    }
    let output = start.command().unwrap().output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The events of a stream.
fn frames(text: &str) -> Vec<(String, Value)> {
    let field = |frame: &str, name: &str| {
        frame.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned)).unwrap_or_default()
    };
    let frames = text.split("\n\n").filter(|frame| frame.contains("event: "));
    frames
        .map(|frame| (field(frame, "event: "), serde_json::from_str(&field(frame, "data: ")).unwrap()))
        .collect()
}
