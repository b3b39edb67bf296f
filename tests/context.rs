//! Conversations and results that are too long for a model.

#![cfg(test)]

use harness::{
    client::{self, Frame},
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};

struct Bench {
    openai: ScriptedOpenAi,
    sleuth: Sleuth,
}

impl Bench {
    /// A model whose window has so many tokens.
    async fn start(window: u32) -> Self {
        let openai = ScriptedOpenAi::start().await.unwrap();
        let list = format!(
            "gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n  custom_args:\n    \
             max_context_size: {window}\n",
            openai.url()
        );
        let start = Start::serve().env("OVERRIDE_MAX_OUTPUT_TOKEN", "1000").models(&list).unwrap();
        Self { openai, sleuth: start.start().await.unwrap() }
    }

    async fn frames(&self, body: &Value) -> Vec<Frame> {
        client::stream(&self.sleuth.url("/api/chat").unwrap(), body).await.unwrap()
    }
}

fn names(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

/// A conversation of about so many tokens.
fn history(tokens: usize) -> Vec<Value> {
    let mut messages = vec![json!({ "role": "system", "content": "Be brief." })];
    for turn in 0..10 {
        let text = format!("turn {turn}: {}", "words and words ".repeat(tokens * 4 / 10 / 16));
        messages.push(json!({ "role": "user", "content": text }));
        messages.push(json!({ "role": "assistant", "content": "Noted." }));
    }
    messages
}

#[tokio::test]
async fn a_long_conversation_is_compacted_and_goes_on() {
    let bench = Bench::start(30_000).await;
    let ask = "and now? FAKE_LLM{\"answer\": \"short\"}";
    let body = json!({ "ask": ask, "stream": true, "conversation_history": history(25_000) });
    let frames = bench.frames(&body).await;
    let order = [
        "conversation_history_compaction_start",
        "conversation_history_compacted",
        "ai_message",
        "token_count",
        "token_count",
        "ai_answer_end",
    ];
    assert_eq!(names(&frames), order, "{:?}", frames.last());
    let started = &frames[0].data["metadata"];
    assert_eq!((&started["max_context_size"], &started["threshold_pct"]), (&json!(30_000), &json!(95)));
    let done = &frames[1].data;
    let sizes = &done["metadata"];
    assert!(sizes["compacted_tokens"].as_u64() < sizes["initial_tokens"].as_u64(), "{sizes}");
    assert!(done["compaction_summary"].is_string() && done["messages"].is_array(), "{done}");
    let end = &frames[5].data;
    assert_eq!(end["analysis"], "short");
    assert_eq!(end["metadata"]["costs"]["num_compactions"], 1);
    let roles: Vec<_> = end["conversation_history"].as_array().unwrap().iter().map(|m| &m["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "system", "assistant"]);
    let last = bench.openai.requests().pop().unwrap();
    assert!(last.body.to_string().len() < 100_000, "the model saw the long conversation");
}

#[tokio::test]
async fn a_conversation_that_cannot_fit_is_a_clear_error() {
    let bench = Bench::start(6_000).await;
    let ask = format!("{} FAKE_LLM{{}}", "much too long ".repeat(4_000));
    let frames = bench.frames(&json!({ "ask": ask, "stream": true })).await;
    let last = frames.last().unwrap();
    assert_eq!(last.event, "error");
    let text = last.data["description"].as_str().unwrap();
    assert!(text.contains("window"), "{text}");
}

#[tokio::test]
async fn the_rest_of_a_result_that_was_cut_can_be_read() {
    let bench = Bench::start(1_000_000).await;
    let seq = json!({ "name": "bash", "args": { "command": "seq 1 40000", "suggested_prefixes": ["seq"] } });
    let rest =
        json!({ "name": "read_tool_result", "args": { "tool_call_id": "call_m2r0t0", "offset": 200_000 } });
    let ask = format!("count FAKE_LLM{}", json!({ "steps": [[seq], [rest]] }));
    let frames = bench.frames(&json!({ "ask": ask, "stream": true })).await;
    let results: Vec<_> = frames.iter().filter(|frame| frame.event == "tool_calling_result").collect();
    let (cut, rest) = (&results[0].data["result"]["data"], &results[1].data["result"]["data"]);
    assert!(
        cut.as_str().unwrap().contains("[TRUNCATED]") && !cut.as_str().unwrap().contains("\n40000"),
        "{cut}"
    );
    assert!(rest.as_str().unwrap().contains("\n40000"), "{}", results[1].data["result"]);
    let metadata = &frames.last().unwrap().data["metadata"];
    let truncation = &metadata["truncations"][0];
    assert_eq!(
        (&truncation["tool_name"], &truncation["tool_call_id"]),
        (&json!("bash"), &json!("call_m2r0t0"))
    );
    assert_eq!(truncation["start_index"], 0);
}

/// A server that has long results of bash summarised by a model that follows this script, and that model.
async fn summarizing(script: &Value) -> (Bench, tempfile::NamedTempFile) {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let entry =
        |id: &str| json!({ "model": format!("openai/{id}"), "api_key": "none", "base_url": openai.url() });
    let list = json!({ "gpt": entry("gpt-4.1"), "small": entry("small") });
    let config = json!({ "input_threshold": 1000, "prompt": format!("Only failures. FAKE_LLM{script}") });
    let own = json!({ "transformers": [{ "name": "llm_summarize", "config": config }] });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, json!({ "toolsets": { "bash": own } }).to_string()).unwrap();
    let start = Start::serve().env("FAST_MODEL", "small").env("SLEUTH_TOOLSETS", file.path());
    let sleuth = start.models(&list.to_string()).unwrap().start().await.unwrap();
    (Bench { openai, sleuth }, file)
}

fn bash(command: &str) -> Value {
    json!({ "name": "bash", "args": { "command": command, "suggested_prefixes": [] } })
}

#[tokio::test]
async fn a_long_result_is_summarised_by_the_fast_model_and_can_be_read_whole() {
    let script = json!({ "answer": "nothing failed", "prompt_tokens": 5000, "completion_tokens": 7 });
    let (bench, _file) = summarizing(&script).await;
    let whole = json!({ "name": "read_tool_result", "args": { "tool_call_id": "call_m2r0t0", "offset": 0 } });
    let usual = json!({ "steps": [[bash("seq 1 3000")], [bash("seq 1 3")], [whole]],
        "prompt_tokens": 1, "completion_tokens": 1 });
    let frames = bench
        .frames(&json!({ "ask": format!("count FAKE_LLM{usual}"), "stream": true, "model": "gpt" }))
        .await;
    let results: Vec<_> = frames
        .iter()
        .filter(|frame| frame.event == "tool_calling_result")
        .map(|frame| frame.data["result"]["data"].as_str().unwrap())
        .collect();
    assert!(results[0].starts_with("nothing failed\n\n[SUMMARY]\n"), "{}", results[0]);
    assert!(results[1].ends_with("1\n2\n3"), "a short result is left alone: {}", results[1]);
    assert!(results[2].contains("\n2999\n3000"), "{}", results[2]);

    let asked = bench.openai.requests();
    let (small, own): (Vec<_>, Vec<_>) = asked.iter().partition(|request| request.body["model"] == "small");
    let [small] = small[..] else { panic!("{} summaries", small.len()) };
    assert!(
        small.body.to_string().contains("2999\\n3000") && small.body["tools"].is_null(),
        "{}",
        small.body
    );
    assert!(
        own.iter().take(3).all(|request| !request.body.to_string().contains("2999")),
        "it saw the result"
    );
    let costs = &frames.last().unwrap().data["metadata"]["costs"];
    assert_eq!((&costs["prompt_tokens"], &costs["completion_tokens"]), (&json!(5004), &json!(11)), "{costs}");
}

#[tokio::test]
async fn without_a_summary_the_result_is_what_it_is() {
    for script in
        [json!({ "status": 400 }), json!({ "answer": "" }), json!({ "answer": "long ".repeat(9000) })]
    {
        let (bench, _file) = summarizing(&script).await;
        let usual = json!({ "steps": [[bash("seq 1 3000")]] });
        let body = json!({ "ask": format!("count FAKE_LLM{usual}"), "stream": true, "model": "gpt" });
        let frames = bench.frames(&body).await;
        let result = frames.iter().find(|frame| frame.event == "tool_calling_result").unwrap();
        assert!(result.data["result"]["data"].as_str().unwrap().contains("\n2999\n3000"), "{script}");
        assert_eq!(frames.last().unwrap().event, "ai_answer_end", "{script}");
    }
}
