//! Work by code through the dialect and through gRPC: every event, commands that a person decides about, long inputs.

use harness::{client, process::descendants};
use prost::Message as _;
use serde_json::{Value, json};
use wire::agent::{
    ChatRequest, DecideRequest, Limits, RlmMode, WatchRequest, agent_client::AgentClient,
    decide_request::Settlement, event::Kind,
};

use crate::bench::{Bench, Chat, SOON, asking, call, until};

/// A model that writes these pieces of code.
pub(crate) fn coding(pieces: &[&str]) -> Value {
    let steps: Vec<_> = pieces.iter().map(|code| json!([call("repl", json!({"code": code}))])).collect();
    json!({"steps": steps, "answer": "I do not know."})
}

pub(crate) fn rlm(more: Value) -> Value {
    let mut mode = json!({"mode": "rlm", "context": "a long text"});
    if let (Value::Object(mode), Value::Object(more)) = (&mut mode, more) {
        mode.extend(more);
    }
    mode
}

pub(crate) fn said(chat: &Chat) -> String {
    chat.all("text").iter().map(|text| text["content"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_command_of_code_waits_for_a_person_and_every_event_is_told() {
    let bench = Bench::start().await;
    let script = coding(&[
        "console.log(context.length); console.warn('!')",
        "const made = await exec('mkdir x');
         const not = await exec('mkdir y').catch(error => error.message);
         FINAL(`${made.exitCode}, ${not}`)",
    ]);
    let body = asking(&script, rlm(json!({})));
    let mut chat = Chat::open(&bench.url(), &body).await;
    let relay = chat.until("relay").await.unwrap();
    assert_eq!((&relay["tool"], &relay["params"]), (&json!("exec"), &json!({"command": "mkdir x"})));
    let (session, id) = (chat.session().to_owned(), relay["id"].as_str().unwrap());
    // Whoever comes back goes on with the same stream, and need not bring the input once more.
    chat = chat.back(&bench.url(), &json!({"messages": []})).await;
    assert_eq!(bench.answer(&session, id, json!({"approved": true})).await.0, 200);
    let second = chat.until("relay").await.unwrap();
    let no = json!({"approved": false, "reason": "one is enough"});
    assert_eq!(bench.answer(&session, second["id"].as_str().unwrap(), no).await.0, 200);
    chat.end().await;

    assert_eq!(said(&chat), "0, exec denied: one is enough");
    let names: Vec<_> = chat.names().into_iter().filter(|name| *name != "repl_progress").collect();
    let expected = [
        "connected",
        "harness_start",
        "usage",
        "repl_input",
        "repl_output",
        "usage",
        "repl_input",
        "relay",
        "tool_call",
        "tool_result",
        "relay",
        "tool_result",
        "repl_output",
        "harness_end",
    ];
    assert_eq!(names, expected);
    let start = chat.all("harness_start")[0];
    assert_eq!(start["maxIterations"], 10);
    for request in bench.openai.requests() {
        let offered = request.body["tools"].as_array().unwrap();
        let names: Vec<_> = offered.iter().map(|tool| &tool["function"]["name"]).collect();
        assert_eq!(names, ["repl"]);
    }
    let (inputs, outputs) = (chat.all("repl_input"), chat.all("repl_output"));
    for (at, (input, output)) in inputs.iter().zip(&outputs).enumerate() {
        let of = ["runId", "agentId"].map(|key| (&input[key], &output[key], &start[key]));
        assert!(of.iter().all(|(input, output, start)| input == start && output == start));
        assert_eq!((&input["id"], &input["iteration"]), (&output["id"], &json!(at)));
        assert_eq!((&output["iteration"], &output["done"]), (&json!(at), &json!(at == 1)));
        assert!(output["durationMs"].is_u64() && output["truncated"] == false, "{output}");
    }
    assert_eq!(outputs[0]["stdout"], "11\n!\n");
    let printed = chat.all("repl_progress");
    let streams: Vec<_> = printed[..2].iter().map(|event| (&event["chunk"], &event["stream"])).collect();
    assert_eq!(streams, [(&json!("11\n"), &json!("stdout")), (&json!("!\n"), &json!("stderr"))]);
    assert_eq!(relay["toolCallId"], chat.all("tool_call")[0]["id"]);
    let results = chat.outputs();
    assert_eq!(results[0]["result"]["exitCode"], 0);
    assert_eq!(*results[1], json!({"status": "denied", "reason": "one is enough"}));
    let end = chat.all("harness_end")[0];
    assert_eq!((&end["reason"], &end["iterations"]), (&json!("final"), &json!(2)));
}

#[tokio::test]
async fn rules_speak_of_commands_of_code_and_always_counts() {
    let bench = Bench::start().await;
    let script = coding(&["const said = [];
        for (const command of ['mkdir a', 'echo secret', 'touch b', 'touch c', 'rm -r a'])
            said.push(await exec(command).then(it => it.exitCode, error => error.message));
        FINAL(said.join('; '))"]);
    let rule = |command: &str| json!({"tool": "exec", "params": {"command": command}});
    let permissions = json!({
        "allowlist": [rule("mkdir *")],
        "deny": [{"tool": "exec", "params": {"command": "echo secret*"}, "reason": "not that"}],
    });
    let body = asking(&script, rlm(json!({"permissions": permissions})));
    let mut chat = Chat::open(&bench.url(), &body).await;
    let relay = chat.until("relay").await.unwrap();
    assert_eq!(relay["params"]["command"], "touch b");
    let session = chat.session().to_owned();
    let always = json!({"approved": true, "always": true});
    assert_eq!(bench.answer(&session, relay["id"].as_str().unwrap(), always).await.0, 200);
    let last = chat.until("relay").await.unwrap();
    assert_eq!(last["params"]["command"], "rm -r a", "`touch c` is like `touch b`");
    let no = json!({"approved": false});
    assert_eq!(bench.answer(&session, last["id"].as_str().unwrap(), no).await.0, 200);
    chat.end().await;
    let refused = "exec denied: Not run: the user refused this call.";
    assert_eq!(said(&chat), format!("0; exec denied: not that; 0; 0; {refused}"));
}

#[tokio::test]
async fn agents_of_code_have_its_permissions() {
    let bench = Bench::start().await;
    let below = coding(&["FINAL(await exec('mkdir x').catch(error => error.message))"]).to_string();
    let asks = format!("FINAL(await llm_query('FAKE' + '_LLM' + {}, 'part'))", json!(below));
    let permissions = json!({"deny": [{"tool": "exec", "reason": "nobody runs anything"}]});
    let body = asking(&coding(&[&asks]), rlm(json!({"permissions": permissions})));
    let mut chat = Chat::open(&bench.url(), &body).await;
    chat.end().await;
    assert!(said(&chat).ends_with("exec denied: nobody runs anything"), "{}", said(&chat));
    let starts = chat.all("harness_start");
    assert_eq!((starts.len(), &starts[1]["depth"]), (2, &json!(1)));
    assert_eq!(starts[1]["parentId"], chat.all("repl_input")[0]["id"]);
}

#[tokio::test]
async fn a_hundred_parts_are_worked_on_by_a_hundred_agents() {
    let bench = Bench::start().await;
    let below = coding(&["FINAL(context.length)"]).to_string();
    let asks = format!(
        "const parts = Array.from({{length: 100}}, (_, at) => 'x'.repeat(at));
         const said = await Promise.all(parts.map(part => llm_query('FAKE' + '_LLM' + {}, part)));
         FINAL(said.reduce((sum, one) => sum + Number(one), 0))",
        json!(below)
    );
    let mut chat = Chat::open(&bench.url(), &asking(&coding(&[&asks]), rlm(json!({"maxDepth": 1})))).await;
    chat.end().await;
    assert_eq!(chat.all("harness_start").len(), 101);
    let answer = chat.all("text").last().map(|text| text["content"].clone());
    assert_eq!(answer, Some(json!("4950")), "{:?}", chat.all("repl_output").last());
}

#[tokio::test]
async fn fifty_megabytes_pass_through_neither_the_model_nor_the_log_nor_the_events() {
    let bench = Bench::start().await;
    let line = "2026-11-22T07:00:00Z INFO request served in 12 ms\n";
    let mut context = line.repeat((50 << 20) / line.len());
    context.insert_str(33 << 20, "\nERROR disk sdb1 is full\n");
    let script = coding(&[
        "scope.at = context.indexOf('ERROR'); console.log(context.length)",
        "FINAL(context.slice(scope.at, context.indexOf('\\n', scope.at)))",
    ]);
    let length = context.len();
    let mut chat = Chat::open(&bench.url(), &asking(&script, rlm(json!({"context": context})))).await;
    chat.end().await;
    assert_eq!(said(&chat), "ERROR disk sdb1 is full");
    assert_eq!(chat.all("repl_output")[0]["stdout"], format!("{length}\n"));
    let shown: usize = chat.seen.iter().map(|frame| frame.data.to_string().len()).sum();
    assert!(shown < 20_000, "{shown} bytes of events");
    let asked = bench.openai.requests().iter().map(|request| request.body.to_string().len()).max();
    assert!(asked < Some(20_000), "{asked:?} bytes for the model");

    let mut client = AgentClient::connect(bench.sleuth.grpc().unwrap()).await.unwrap();
    let watch = WatchRequest { run_id: chat.run_id(), ..WatchRequest::default() };
    let mut log = client.watch(watch).await.unwrap().into_inner();
    let mut written = 0;
    while let Some(event) = log.message().await.unwrap() {
        written += event.encoded_len();
    }
    assert!((1..50_000).contains(&written), "{written} bytes of log");
}

#[tokio::test]
async fn questions_of_code_are_asked_some_at_a_time_and_end_with_it() {
    let bench = Bench::with(|start, _| start.env("SLEUTH_DISCONNECT_GRACE", "0")).await;
    let script = coding(&[
        "await Promise.all(Array.from({length: 40}, () => llm_query('FAKE' + '_LLM{\"hang\": true}')))",
    ]);
    let idle = descendants(bench.sleuth.id().unwrap());
    let mut chat = Chat::open(&bench.url(), &asking(&script, rlm(json!({"maxDepth": 0})))).await;
    chat.until("repl_input").await.unwrap();
    assert!(bench.openai.until_in_flight(16, SOON).await, "{} are asked", bench.openai.in_flight());
    assert_eq!(bench.openai.requests().len(), 17, "the one that wrote the code, and sixteen");
    drop(chat);
    assert!(bench.openai.until_idle(SOON).await);
    let left = || descendants(bench.sleuth.id().unwrap());
    until("the end of the interpreter", async || left().iter().all(|one| idle.contains(one))).await;
}

#[tokio::test]
async fn tokens_of_all_agents_and_questions_are_one_budget() {
    let bench = Bench::with(|start, _| start.arg("--max-tokens").arg("2500")).await;
    let asks = "const said = [];
        for (let at = 0; at < 5; at++) {
            const asked = llm_query('FAKE' + '_LLM{\"answer\": \"y\", \"prompt_tokens\": 1000}');
            said.push(await asked.catch(error => error.message));
        }
        console.log(said.join('; '))";
    let mut script = coding(&[asks, "console.log('never')"]);
    script["prompt_tokens"] = json!(1000);
    let mut chat = Chat::open(&bench.url(), &asking(&script, rlm(json!({"maxDepth": 0})))).await;
    chat.end().await;
    let outputs = chat.all("repl_output");
    assert_eq!(outputs.len(), 1, "the model must answer after that");
    let printed = outputs[0]["stdout"].as_str().unwrap();
    assert!(printed.starts_with("y; y; this run has reached"), "{printed}");
    assert_eq!(chat.all("harness_end")[0]["reason"], "max_iterations");
}

#[tokio::test]
async fn over_grpc_a_person_decides_about_commands_of_code_too() {
    let bench = Bench::start().await;
    let script = coding(&["FINAL(await exec('mkdir x').catch(error => error.message))"]);
    let mut client = AgentClient::connect(bench.sleuth.grpc().unwrap()).await.unwrap();
    let request = ChatRequest {
        question: format!("look FAKE_LLM{script}"),
        rlm: Some(RlmMode { context: "text".to_owned(), ..RlmMode::default() }),
        approvals: true,
        waits: true,
        ..ChatRequest::default()
    };
    let mut events = client.chat(request).await.unwrap().into_inner();
    let mut answer = None;
    while let Some(event) = events.message().await.unwrap() {
        match event.kind {
            Some(Kind::ApprovalRequested(asked)) => {
                let settlement = Some(Settlement::Denial("not here".to_owned()));
                let (run_id, call_id) = (event.run_id, asked.call_id);
                let word = DecideRequest { run_id, call_id, settlement, ..DecideRequest::default() };
                client.decide(word).await.unwrap();
            }
            Some(Kind::RunFinished(finished)) => answer = Some(finished.answer),
            _ => {}
        }
    }
    assert_eq!(answer.as_deref(), Some("exec denied: not here"));
}

#[tokio::test]
async fn commands_of_code_count_as_calls_of_their_run() {
    let bench = Bench::start().await;
    let script = coding(&["let made = 0;
        for (;;) {
            const why = await exec('true').then(() => made++ && '', error => error.message);
            if (why) { FINAL(`${made}: ${why}`); break; }
        }"]);
    let mut client = AgentClient::connect(bench.sleuth.grpc().unwrap()).await.unwrap();
    let request = ChatRequest {
        question: format!("look FAKE_LLM{script}"),
        rlm: Some(RlmMode { context: "text".to_owned(), ..RlmMode::default() }),
        limits: Some(Limits { tool_calls: 4, ..Limits::default() }),
        ..ChatRequest::default()
    };
    let mut events = client.chat(request).await.unwrap().into_inner();
    let (mut began, mut placed, mut ended, mut answer) = (0, 0, 0, String::new());
    while let Some(event) = events.message().await.unwrap() {
        match event.kind {
            Some(Kind::ToolStarted(_)) => began += 1,
            Some(Kind::CallPlaced(call)) if call.call_id.contains('/') => placed += 1,
            Some(Kind::ToolFinished(_)) => ended += 1,
            Some(Kind::RunFinished(finished)) => answer = finished.answer,
            _ => {}
        }
    }
    assert_eq!((began, placed, ended), (3, 3, 3), "{answer}");
    assert!(answer.starts_with("3: exec denied: Not run: the limit of tool calls"), "{answer}");
}

#[tokio::test]
async fn commands_of_code_start_where_the_client_says_within_the_workspace() {
    let bench = Bench::start().await;
    let script = coding(&["FINAL((await exec('pwd')).stdout.trim().split('/').slice(-2).join('/'))"]);
    let mut chat = Chat::open(&bench.url(), &asking(&script, rlm(json!({"execCwd": "logs/today"})))).await;
    chat.end().await;
    assert_eq!(said(&chat), "logs/today");
    for outside in ["../x", "/etc"] {
        let body = asking(&script, rlm(json!({"execCwd": outside})));
        let (status, answer) = client::post(&format!("{}/chat", bench.url()), &body).await.unwrap();
        assert_eq!(status, 400, "{answer}");
    }
}
