//! Scripted models, OpenAI's way and Anthropic's, through the whole path over real sockets.

#![cfg(test)]

use std::time::Duration;

use futures_util::future::join_all;
use harness::{
    client::{self, Frame, Stream},
    models::{ScriptedAnthropic, ScriptedOpenAi},
    process::{Sleuth, Start, descendants},
};
use serde_json::{Value, json};

/// Long enough for a loaded machine; never waited for in a passing test.
const SOON: Duration = Duration::from_secs(90);

struct Bench {
    openai: ScriptedOpenAi,
    anthropic: ScriptedAnthropic,
    sleuth: Sleuth,
}

const BOTH: [&str; 2] = ["gpt", "claude"];

impl Bench {
    async fn start() -> Self {
        Self::start_with(|start| start).await
    }

    async fn start_with(change: impl FnOnce(Start) -> Start) -> Self {
        let (openai, anthropic) =
            (ScriptedOpenAi::start().await.unwrap(), ScriptedAnthropic::start().await.unwrap());
        let list = format!(
            "gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test-gpt\n  base_url: {}\n\
             claude:\n  model: anthropic/claude-sonnet-4-5\n  api_key: sk-test-claude\n  base_url: {}\n",
            openai.url(),
            anthropic.url(),
        );
        let start = Start::serve()
            .env("LLM_RATE_LIMIT_MAX_WAIT_SECONDS", "1")
            .env("LLM_IDLE_TIMEOUT", "1")
            .models(&list)
            .unwrap();
        let sleuth = change(start).start().await.unwrap();
        Self { openai, anthropic, sleuth }
    }

    async fn frames(&self, model: &str, ask: &str) -> Vec<Frame> {
        let body = json!({ "ask": ask, "model": model, "stream": true });
        client::stream(&self.sleuth.url("/api/chat").unwrap(), &body).await.unwrap()
    }

    async fn answer(&self, model: &str, ask: &str) -> (u16, Value) {
        let body = json!({ "ask": ask, "model": model });
        let (status, body) = client::post(&self.sleuth.url("/api/chat").unwrap(), &body).await.unwrap();
        (status.as_u16(), body)
    }
}

fn names(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

fn results(frames: &[Frame]) -> Vec<&Value> {
    frames.iter().filter(|frame| frame.event == "tool_calling_result").map(|frame| &frame.data).collect()
}

fn script(script: &Value) -> String {
    format!("look FAKE_LLM{script}")
}

fn bash(command: &str) -> Value {
    let prefix = command.split(' ').next();
    json!({ "name": "bash", "args": { "command": command, "suggested_prefixes": [prefix] } })
}

#[tokio::test]
async fn answers_thinking_and_tools_come_in_the_documented_order() {
    let bench = Bench::start().await;
    for model in BOTH {
        let plain = bench.frames(model, &script(&json!({ "answer": "All is well: äöü €😀" }))).await;
        assert_eq!(names(&plain), ["token_count", "ai_answer_end"], "{model}");
        assert_eq!(plain[1].data["analysis"], "All is well: äöü €😀", "{model}");

        let one = json!({ "rounds": 1, "say": "Looking.", "thinking": "Hm, an echo." });
        let one = bench.frames(model, &script(&one)).await;
        let order = [
            "token_count",
            "ai_message",
            "start_tool_calling",
            "tool_calling_result",
            "token_count",
            "token_count",
            "ai_answer_end",
        ];
        assert_eq!(names(&one), order, "{model}");
        assert_eq!(one[1].data["content"], "Looking.", "{model}");
        assert_eq!(one[1].data["reasoning"], "Hm, an echo.", "{model}");
        assert_eq!(one[3].data["result"]["data"], "echo r0t0\nr0t0", "{model}");

        let many = bench.frames(model, &script(&json!({ "rounds": 3, "tools": 4 }))).await;
        let results = results(&many);
        assert_eq!(results.len(), 12, "{model}");
        assert!(results.iter().all(|result| result["result"]["status"] == "success"), "{model}");
    }
}

#[tokio::test]
async fn thinking_goes_through_a_clients_history_back_to_the_provider_that_signed_it() {
    let bench = Bench::start().await;
    let chat = async |body: Value| {
        let (status, answer) = client::post(&bench.sleuth.url("/api/chat").unwrap(), &body).await.unwrap();
        assert_eq!(status, 200, "{answer}");
        answer["conversation_history"].clone()
    };
    let first = script(&json!({ "rounds": 1, "say": "Looking.", "thinking": "Hm, 日本." }));
    let history = chat(json!({ "ask": first, "model": "claude" })).await;
    let block = json!({ "type": "thinking", "thinking": "Hm, 日本.", "signature": "scripted-signature" });
    let held = history.as_array().unwrap().iter().filter(|said| said["role"] == "assistant");
    assert_eq!(held.filter(|said| said["thinking_blocks"][0] == block).count(), 2, "{history}");

    for (model, given_back) in [("claude", 2), ("gpt", 0)] {
        chat(json!({ "ask": script(&json!({})), "model": model, "conversation_history": history })).await;
        let asked = match model {
            "claude" => bench.anthropic.requests().pop().unwrap().body,
            _ => bench.openai.requests().pop().unwrap().body,
        };
        let messages = asked["messages"].as_array().unwrap().iter();
        let blocks = messages.filter(|said| said["content"][0]["type"] == "thinking");
        assert_eq!(blocks.clone().count(), given_back, "{asked}");
        for said in blocks {
            let mut sent = said["content"][0].clone();
            sent.as_object_mut().unwrap().remove("cache_control");
            assert_eq!(sent, block, "unchanged");
        }
    }
}

#[tokio::test]
async fn what_goes_wrong_with_a_tool_is_told_to_the_model_which_goes_on() {
    let bench = Bench::start().await;
    let steps = json!({ "answer": "done", "steps": [[
        { "name": "no_such_tool", "args": {} },
        { "name": "bash", "args": "{not json" },
        { "name": "bash", "args": {} },
        bash("rm -rf /tmp/x"),
        bash("sudo id"),
        bash("grep zzz /dev/null"),
        bash("echo -n"),
        { "name": "bash", "args": { "command": "tail -f /dev/null", "suggested_prefixes": ["tail"], "timeout": 1 } },
    ]] });
    for model in BOTH {
        let frames = bench.frames(model, &script(&steps)).await;
        let of = |part: &str| {
            let found = results(&frames).into_iter().find(|result| result.to_string().contains(part));
            found.unwrap_or_else(|| panic!("{model}: no result with `{part}` in {frames:#?}"))["result"]
                .clone()
        };
        assert_eq!(of("no_such_tool")["error"], "Failed to find tool no_such_tool", "{model}");
        assert_eq!(of("rm -rf")["status"], "error", "{model}");
        let sudo = of("sudo id");
        assert!(sudo["error"].as_str().unwrap().starts_with("Command blocked:"), "{model}: {sudo}");
        let nothing = of("grep zzz");
        assert_eq!(nothing["return_code"], 1, "{model}: {nothing}");
        assert_eq!(of("echo -n")["status"], "no_data", "{model}");
        let late = of("tail -f");
        assert!(late["error"].as_str().unwrap().contains("timed out after 1 second"), "{model}: {late}");
        let refused = results(&frames).iter().filter(|result| result["result"]["status"] == "error").count();
        assert_eq!(refused, 7, "{model}");
        assert_eq!(frames.last().unwrap().data["analysis"], "done", "{model}");
    }
}

#[tokio::test]
async fn big_output_is_cut_and_the_run_goes_on() {
    let bench = Bench::start().await;
    let big = script(&json!({ "steps": [[bash("seq 1 2000000")]] }));
    let frames = bench.frames("gpt", &big).await;
    let data = results(&frames)[0]["result"]["data"].as_str().unwrap();
    assert!(data.len() < 200_000 && data.contains("\n\n[TRUNCATED]"), "{} bytes", data.len());
    assert_eq!(names(&frames).last(), Some(&"ai_answer_end"));
}

#[tokio::test]
async fn a_reply_cut_anywhere_reads_the_same() {
    let bench = Bench::start().await;
    for model in BOTH {
        let cut = json!({ "rounds": 1, "say": "grüße €😀", "answer": "fertig 😀", "cut": "chunk" });
        let frames = bench.frames(model, &script(&cut)).await;
        assert_eq!(frames[1].data["content"], "grüße €😀", "{model}");
        assert_eq!(frames.last().unwrap().data["analysis"], "fertig 😀", "{model}");
    }
}

#[tokio::test]
async fn what_goes_wrong_with_a_model_has_its_status_and_its_code() {
    let bench = Bench::start().await;
    let faults = [
        (json!({ "status": 400 }), 500, 1),
        (json!({ "status": 401 }), 401, 1),
        (json!({ "status": 429, "retry_after": 1 }), 429, 5204),
        (json!({ "status": 500 }), 500, 1),
        (json!({ "status": 529 }), 500, 1),
        (json!({ "malformed": true }), 500, 1),
        (json!({ "break_after": 1 }), 500, 1),
        (json!({ "hang": true }), 500, 1),
    ];
    let cases = BOTH.into_iter().flat_map(|model| faults.iter().map(move |fault| (model, fault)));
    // Retries wait; so all wait at once.
    join_all(cases.map(async |(model, (fault, status, code))| {
        let ask = script(fault);
        let ((got, body), frames) = tokio::join!(bench.answer(model, &ask), bench.frames(model, &ask));
        assert_eq!(got, *status, "{model} {fault}: {body}");
        let detail = body["detail"].as_str().unwrap();
        assert!(!detail.is_empty() && !detail.contains("sk-test"), "{model} {fault}: {detail}");
        let [.., last] = frames.as_slice() else { panic!("{model} {fault}: no event") };
        assert_eq!(last.event, "error", "{model} {fault}");
        assert_eq!(last.data["error_code"], *code, "{model} {fault}: {last:?}");
        assert_eq!(last.data["success"], false, "{model} {fault}");
    }))
    .await;
    let healthy = bench.answer("gpt", &script(&json!({ "answer": "still here" }))).await;
    assert_eq!(healthy.1["analysis"], "still here");
}

#[tokio::test]
async fn text_streams_over_grpc_as_it_comes() {
    let bench = Bench::start().await;
    let mut client =
        wire::agent::agent_client::AgentClient::connect(bench.sleuth.grpc().unwrap()).await.unwrap();
    let slow =
        script(&json!({ "answer": "one two three four five six seven eight nine ten", "chunk_ms": 30 }));
    let request = wire::agent::ChatRequest { question: slow, model: "gpt".into(), ..Default::default() };
    let mut events = client.chat(request).await.unwrap().into_inner();
    let (mut deltas, mut positions) = (0, Vec::new());
    while let Some(event) = events.message().await.unwrap() {
        positions.push(event.position);
        if let Some(wire::agent::event::Kind::TextDelta(_)) = event.kind {
            deltas += 1;
        }
    }
    assert!(deltas >= 2, "{deltas}");
    assert!(positions.iter().copied().eq(1..=positions.len() as u64), "{positions:?}");
}

#[tokio::test]
async fn a_run_is_watched_from_any_position_by_its_own_account() {
    let bench = Bench::start().await;
    let url = bench.sleuth.grpc().unwrap();
    let mut client = wire::agent::agent_client::AgentClient::connect(url).await.unwrap();
    let question = script(&json!({ "rounds": 1 }));
    let request = wire::agent::ChatRequest { question, model: "gpt".into(), ..Default::default() };
    let mut events = client.chat(request).await.unwrap().into_inner();
    let mut all = Vec::new();
    while let Some(event) = events.message().await.unwrap() {
        all.push(event);
    }
    let run_id = all[0].run_id.clone();
    let watch = |account: &str, after_position| wire::agent::WatchRequest {
        caller: Some(wire::agent::Caller { account: account.into(), ..Default::default() }),
        run_id: run_id.clone(),
        after_position,
    };
    let mut events = client.watch(watch("", 3)).await.unwrap().into_inner();
    let mut rest = Vec::new();
    while let Some(event) = events.message().await.unwrap() {
        rest.push(event);
    }
    assert_eq!(rest, all[3..]);
    let refused = client.watch(watch("somebody else", 0)).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::NotFound);
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_model_call() {
    let bench = Bench::start_with(|start| start.env("SLEUTH_DISCONNECT_GRACE", "0")).await;
    let slow = json!({ "ask": script(&json!({ "latency_ms": 60_000 })), "model": "gpt", "stream": true });
    let stream = Stream::open(&bench.sleuth.url("/api/chat").unwrap(), &slow).await.unwrap();
    assert!(bench.openai.until_in_flight(1, SOON).await, "the model was never asked");
    drop(stream);
    assert!(bench.openai.until_idle(Duration::from_secs(1)).await, "the model call goes on without a reader");
    assert_eq!(bench.anthropic.in_flight(), 0);
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_command() {
    let bench = Bench::start_with(|start| start.env("SLEUTH_DISCONNECT_GRACE", "0")).await;
    let command = bash("tail -f /dev/null");
    let slow = json!({ "ask": script(&json!({ "steps": [[command]] })), "model": "gpt", "stream": true });
    let mut stream = Stream::open(&bench.sleuth.url("/api/chat").unwrap(), &slow).await.unwrap();
    while stream.next().await.unwrap().unwrap().event != "start_tool_calling" {}
    let id = bench.sleuth.id().unwrap();
    let runs = || descendants(id).iter().any(|(_, command)| command.starts_with("tail -f"));
    until(runs, SOON).await;
    drop(stream);
    until(|| !runs(), Duration::from_secs(1)).await;
}

#[tokio::test]
async fn a_run_can_be_cancelled_from_elsewhere() {
    let bench = Bench::start().await;
    let slow = json!({ "ask": script(&json!({ "latency_ms": 60_000 })), "model": "gpt", "stream": true });
    let mut stream = Stream::open(&bench.sleuth.url("/api/chat").unwrap(), &slow).await.unwrap();
    assert!(bench.openai.until_in_flight(1, SOON).await);
    let http = reqwest::Client::new();
    let runs: Value =
        http.get(bench.sleuth.url("/api/runs").unwrap()).send().await.unwrap().json().await.unwrap();
    let id = runs["runs"][0]["run_id"].as_str().unwrap_or_else(|| panic!("{runs}"));
    let cancel = bench.sleuth.url(&format!("/api/runs/{id}/cancel")).unwrap();
    let answer = http.post(cancel).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let last = stream.next().await.unwrap().unwrap();
    assert_eq!((last.event.as_str(), &last.data["error_code"]), ("error", &json!(1)));
    assert!(bench.openai.until_idle(Duration::from_secs(1)).await);
}

#[tokio::test]
async fn ceilings_end_a_run_with_what_was_found() {
    let bench = Bench::start_with(|start| start.env("MAX_STEPS", "3")).await;
    let frames = bench.frames("gpt", &script(&json!({ "rounds": 50, "answer": "found so far" }))).await;
    assert_eq!(results(&frames).len(), 2);
    let last = frames.last().unwrap();
    assert_eq!(last.data["analysis"], "found so far");
    assert_eq!(last.data["metadata"]["finish_reason"], "step_limit");
}

#[tokio::test]
async fn a_repeated_call_is_refused() {
    let bench = Bench::start().await;
    let same =
        script(&json!({ "rounds": 2, "args": { "command": "echo same", "suggested_prefixes": ["echo"] } }));
    let frames = bench.frames("gpt", &same).await;
    let statuses: Vec<_> = results(&frames).iter().map(|result| &result["result"]["status"]).collect();
    assert_eq!(statuses, ["success", "error"]);
}

const TICK: Duration = Duration::from_millis(10);

/// Waits until something is so.
async fn until(is_so: impl Fn() -> bool, limit: Duration) {
    let waited = tokio::time::timeout(limit, async {
        while !is_so() {
            tokio::time::sleep(TICK).await;
        }
    });
    assert!(waited.await.is_ok(), "it did not happen within {limit:?}");
}
