//! Toolsets of the operator through the whole program: headers on their way in, images on their way out, tools that
//! want a runbook.

#![cfg(test)]

use std::path::PathBuf;

use harness::{
    client::Stream,
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

struct Bench {
    openai: ScriptedOpenAi,
    sleuth: Sleuth,
    _file: NamedTempFile,
}

impl Bench {
    /// A server with these toolsets, a model that sees images and one that does not.
    async fn start(toolsets: &Value) -> Self {
        let openai = ScriptedOpenAi::start().await.unwrap();
        let entry = json!({"model": "openai/scripted", "api_key": "none", "base_url": openai.url()});
        let mut blind = entry.clone();
        blind["supports_vision"] = json!(false);
        let file = NamedTempFile::new().unwrap();
        std::fs::write(&file, toolsets.to_string()).unwrap();
        let start = Start::serve().env("SLEUTH_TOOLSETS", file.path()).env("SLEUTH_PASS_HEADERS", "X-Tenant");
        let models = json!({"seeing": entry, "blind": blind}).to_string();
        let sleuth = start.models(&models).unwrap().start().await.unwrap();
        Self { openai, sleuth, _file: file }
    }

    /// The results of the calls of a script, as a stream shows them.
    async fn results(&self, steps: Value, model: &str, headers: &[(&str, &str)]) -> Vec<Value> {
        let ask = format!("look FAKE_LLM{}", json!({ "steps": steps }));
        let body = json!({"ask": ask, "stream": true, "model": model});
        let url = self.sleuth.url("/api/chat").unwrap();
        let mut request = reqwest::Client::new().post(url).json(&body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut stream = Stream::read(request.send().await.unwrap()).await.unwrap();
        let (mut results, mut last) = (Vec::new(), String::new());
        while let Some(frame) = stream.next().await.unwrap() {
            if frame.event == "tool_calling_result" {
                results.push(frame.data["result"].clone());
            }
            last = frame.event;
        }
        assert_eq!(last, "ai_answer_end");
        results
    }
}

fn call(name: &str, args: &Value) -> Value {
    json!([{ "name": name, "args": args }])
}

#[tokio::test]
async fn a_header_that_is_passed_on_reaches_a_tool_and_no_log() {
    let tool = json!({"name": "tenant", "description": "d", "command": "printf '<%s>' {{ request_context.headers['X-Tenant'] }}"});
    let other = json!({"name": "other", "description": "d", "command": "printf '<%s>' {{ request_context.headers['X-Other'] }}"});
    let bench = Bench::start(&json!({"toolsets": {"own": {"tools": [tool, other]}}})).await;
    let steps = json!([call("tenant", &json!({}))[0], call("other", &json!({}))[0]]);
    let headers = [("X-Tenant", "tenant-of-the-test"), ("X-Other", "x")];
    let results = bench.results(json!([steps]), "seeing", &headers).await;
    assert!(
        results.iter().any(|result| result["data"].as_str().unwrap().ends_with("<tenant-of-the-test>")),
        "{results:?}"
    );
    assert!(
        results.iter().any(|result| result["error"].as_str().is_some_and(|why| why.contains("`X-Other`"))),
        "{results:?}"
    );
    assert!(!bench.sleuth.log().iter().any(|line| line.contains("tenant-of-the-test")));
}

#[tokio::test]
async fn a_restricted_tool_runs_once_a_runbook_is_followed() {
    let tool = json!({"name": "drain", "description": "d", "command": "echo drained"});
    let own = json!({"restricted_tools": ["dr*"], "tools": [tool]});
    let bench = Bench::start(&json!({"toolsets": {"own": own}})).await;
    let runbook = call("fetch_runbook", &json!({"runbook_id": "crash-loop"}));
    let steps = json!([call("drain", &json!({})), runbook, call("drain", &json!({"again": true}))]);
    let results = bench.results(steps, "seeing", &[]).await;
    assert!(results[0]["error"].as_str().unwrap().contains("for steps of a runbook"), "{results:?}");
    assert_eq!(results[1]["status"], "success", "{results:?}");
    assert!(results[2]["data"].as_str().unwrap().ends_with("drained"), "{results:?}");
}

/// The server that the tests of the executor speak to; built as an example of it.
fn demo() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let program =
        test.ancestors().skip(1).map(|folder| folder.join("examples/mcp-demo")).find(|path| path.is_file());
    harness::components::has("mcp-demo", program.is_some()).then_some(program).flatten()
}

#[tokio::test]
async fn an_image_of_a_tool_is_seen_by_a_model_that_can() {
    let Some(program) = demo() else { return };
    let server = json!({"allowed_tools": ["*"], "config": {"mode": "stdio", "command": program}});
    let bench = Bench::start(&json!({"mcp_servers": {"demo": server}})).await;
    let steps = json!([call("draw", &json!({}))]);
    let results = bench.results(steps.clone(), "seeing", &[]).await;
    assert_eq!(results[0]["images"], json!([{"data": "AAAA", "mimeType": "image/png"}]), "{results:?}");
    let asked = bench.openai.requests().pop().unwrap().body;
    let [.., result, seen] = &asked["messages"].as_array().unwrap()[..] else { panic!("{asked}") };
    assert_eq!(result["role"], "tool", "{asked}");
    assert_eq!(
        seen["content"][1],
        json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}})
    );

    let results = bench.results(steps, "blind", &[]).await;
    assert_eq!(results[0]["images"], Value::Null);
    let asked = bench.openai.requests().pop().unwrap().body.to_string();
    assert!(!asked.contains("image_url") && asked.contains("The model sees no images"), "{asked}");
}
