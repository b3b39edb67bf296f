//! Changes that a person allows or denies, through the whole path: the executor runs exactly what was shown, once.

#![cfg(test)]

use std::{fs, path::PathBuf, time::Duration};

use harness::{
    client,
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use wire::agent::{
    ChatRequest, DecideOutcome, DecideRequest, agent_client::AgentClient, decide_request::Settlement,
    event::Kind,
};

const SOON: Duration = Duration::from_secs(90);

struct Bench {
    openai: ScriptedOpenAi,
    sleuth: Sleuth,
    folder: TempDir,
}

impl Bench {
    async fn start() -> Self {
        let openai = ScriptedOpenAi::start().await.unwrap();
        let folder = TempDir::new().unwrap();
        let sleuth = Self::server(&openai, &folder).await;
        Self { openai, sleuth, folder }
    }

    async fn server(openai: &ScriptedOpenAi, folder: &TempDir) -> Sleuth {
        let list = format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk\n  base_url: {}\n", openai.url());
        let start = Start::serve().env("SLEUTH_DATA_DIR", folder.path().join("data"));
        start.models(&list).unwrap().start().await.unwrap()
    }

    fn mark(&self) -> PathBuf {
        self.folder.path().join("mark")
    }

    fn written(&self) -> usize {
        fs::read_to_string(self.mark()).unwrap_or_default().lines().count()
    }

    /// What the model is to do: write a line to the mark.
    fn script(&self) -> String {
        let command = format!("echo once >> {}", self.mark().display());
        let call = json!({ "name": "bash", "args": { "command": command, "suggested_prefixes": ["echo"] } });
        format!("write FAKE_LLM{}", json!({ "steps": [[call]], "answer": "done" }))
    }

    async fn chat(&self, body: &Value) -> Value {
        let (status, answer) = client::post(&self.sleuth.url("/api/chat").unwrap(), body).await.unwrap();
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// A conversation that waits for a person.
    async fn held(&self) -> Value {
        let held = self.chat(&json!({ "ask": self.script(), "enable_tool_approval": true })).await;
        assert_eq!(held["requires_approval"], true, "{held}");
        assert_eq!(self.written(), 0);
        held
    }

    async fn decide(&self, held: &Value, decision: Value) -> Value {
        let mut decision = decision;
        decision["tool_call_id"] = held["pending_approvals"][0]["tool_call_id"].clone();
        self.chat(&json!({
            "ask": "", "enable_tool_approval": true,
            "conversation_history": held["conversation_history"], "tool_decisions": [decision],
        }))
        .await
    }
}

#[tokio::test]
async fn what_a_person_allows_runs_once_also_after_a_restart() {
    let mut bench = Bench::start().await;
    let held = bench.held().await;
    bench.sleuth.stop().await.unwrap();
    bench.sleuth = Bench::server(&bench.openai, &bench.folder).await;
    let answer = bench.decide(&held, json!({ "approved": true })).await;
    assert_eq!(answer["analysis"], "done", "{answer}");
    assert_eq!(bench.written(), 1);
    let again = bench.decide(&held, json!({ "approved": true })).await;
    assert_eq!(bench.written(), 1, "a permission counts once: {again}");
}

#[tokio::test]
async fn what_a_person_denies_does_not_run_and_the_model_hears_why() {
    let bench = Bench::start().await;
    let held = bench.held().await;
    let answer = bench.decide(&held, json!({ "approved": false, "feedback": "use /data" })).await;
    assert_eq!(bench.written(), 0);
    assert!(answer["conversation_history"].to_string().contains("use /data"), "{answer}");
}

#[tokio::test]
async fn a_run_that_waits_goes_on_with_the_first_word() {
    let bench = Bench::start().await;
    let mut client = AgentClient::connect(bench.sleuth.grpc().unwrap()).await.unwrap();
    let request =
        ChatRequest { question: bench.script(), approvals: true, waits: true, ..ChatRequest::default() };
    let mut events = client.chat(request).await.unwrap().into_inner();
    let (run_id, call_id) = loop {
        let event = events.message().await.unwrap().unwrap();
        if let Some(Kind::ApprovalRequested(asked)) = event.kind {
            break (event.run_id, asked.call_id);
        }
    };
    let word = |settlement| DecideRequest {
        run_id: run_id.clone(),
        call_id: call_id.clone(),
        settlement: Some(settlement),
        ..DecideRequest::default()
    };
    let denial = || Settlement::Denial("not now".to_owned());
    let unknown = DecideRequest { call_id: "other".to_owned(), ..word(denial()) };
    assert_eq!(client.decide(unknown).await.unwrap_err().code(), tonic::Code::NotFound);
    let outcome = client.decide(word(denial())).await.unwrap().into_inner().outcome();
    assert_eq!(outcome, DecideOutcome::Counts);
    let late = client.decide(word(Settlement::Grant(b"forged".to_vec()))).await;
    // It waits no more, or another word came first.
    assert!(late.is_err() || late.unwrap().into_inner().outcome() == DecideOutcome::Late);
    let rest = tokio::time::timeout(SOON, async {
        let mut kinds = Vec::new();
        while let Some(event) = events.message().await.unwrap() {
            kinds.extend(event.kind);
        }
        kinds
    });
    let rest = rest.await.expect("the run ends");
    let result = rest.iter().find_map(|kind| match kind {
        Kind::ToolFinished(finished) => finished.result.as_ref(),
        _ => None,
    });
    assert!(result.unwrap().error.contains("not now"), "{result:?}");
    assert!(matches!(rest.last(), Some(Kind::RunFinished(_))), "{rest:?}");
    assert_eq!(bench.written(), 0);
}
