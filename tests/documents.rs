//! The examples of the two documents of the HolmesGPT API, sent as they are printed there, to servers whose models
//! have plain names and to such whose models have names like providers' ids.
//!
//! Each of `documents/{current,older}/*.json` is one example: the request, the status with either list, and what the
//! document says of the answer, in the language of `captures/facts.rs`. What else is in an answer is free. Where the
//! document leaves something out (`...`), something is put in. `documents/events.json` has the documented events.

#![cfg(test)]

#[path = "captures/facts.rs"]
mod facts;

use std::{collections::BTreeMap, fs, path::PathBuf};

use harness::{
    client,
    components::cluster,
    models::{Script, ScriptedOpenAi},
    process::{Sleuth, Start},
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The name of a model list, and its models.
type List = (&'static str, &'static [&'static str]);

/// The folder of a document's examples, and the lists.
const DOCUMENTS: [(&str, [List; 2]); 2] = [("current", CURRENT), ("older", OLDER)];
const CURRENT: [List; 2] = [
    ("plain", &["fast-model", "accurate-model"]),
    ("raw", &["anthropic/claude-sonnet-4-5-20250929", "anthropic/claude-opus-4-5-20251101", "robusta"]),
];
const OLDER: [List; 2] = [
    ("plain", &["fast-model", "accurate-model", "gpt-4.1"]),
    (
        "raw",
        &["gpt-4.1", "azure/gpt-4.1", "robusta", "openai/gpt-4.1", "anthropic/claude-sonnet-4-5-20250929"],
    ),
];

#[derive(Debug, Deserialize)]
struct Example {
    method: String,
    path: String,
    /// Who answers if the body names no model; by default the first one of the list.
    #[serde(default)]
    answered_by: Option<String>,
    body: Value,
    /// What the model is scripted to say, where the document prints an answer.
    #[serde(default)]
    model_says: Script,
    /// By the name of the list; an example need not make sense with both.
    status: BTreeMap<String, u16>,
    /// Of a good answer: a JSON body, or the events of a stream.
    answer: Value,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/documents")
}

fn examples(document: &str) -> BTreeMap<String, Example> {
    let paths = fs::read_dir(folder().join(document)).unwrap().map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap())
        })
        .collect()
}

async fn serve(model: &ScriptedOpenAi, names: &[&str], default: Option<&str>) -> Sleuth {
    let entry = json!({"model": "openai/scripted", "api_base": model.url(), "api_key": "none"});
    // A list is a YAML mapping, whose order counts; JSON values are YAML.
    let list: String = names.iter().map(|name| format!("{name:?}: {entry}\n")).collect();
    let start = Start::serve().models(&list).unwrap();
    default.into_iter().fold(start, |start, name| start.env("MODEL", name)).start().await.unwrap()
}

/// The status, and the body or the events.
async fn send(server: &Sleuth, example: &Example) -> (u16, Value) {
    let url = server.url(&example.path).unwrap();
    if example.answer.is_array() {
        let frames = client::stream(&url, &example.body).await.unwrap();
        let event = |frame: client::Frame| json!({"event": frame.event, "data": frame.data});
        return (200, frames.into_iter().map(event).collect());
    }
    let request = reqwest::Client::new().request(example.method.parse().unwrap(), url);
    let request = if example.body.is_null() { request } else { request.json(&example.body) };
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn examples_are_answered_as_documented() {
    for (document, lists) in DOCUMENTS {
        let examples = examples(document);
        for (list, names) in lists {
            for default in [None, Some("builtin/triage")] {
                let wanted = |example: &&Example| {
                    example.answered_by.as_deref() == default && example.status.contains_key(list)
                };
                if !examples.values().any(|example| wanted(&example)) {
                    continue;
                }
                let model = ScriptedOpenAi::start().await.unwrap();
                let server = serve(&model, names, default).await;
                for (name, example) in examples.iter().filter(|(_, example)| wanted(example)) {
                    model.say_by_default(example.model_says.clone());
                    check(&server, &format!("{document} {name}, {list}"), example, (list, names)).await;
                }
            }
        }
    }
}

async fn check(server: &Sleuth, name: &str, example: &Example, (list, names): List) {
    let (status, answer) = send(server, example).await;
    assert_eq!(status, example.status[list], "{name}: {answer}");
    if status == 200 {
        let lacking = facts::lacking(&example.answer, &answer);
        assert!(lacking.is_empty(), "{name}: {lacking:#?}\n{answer:#}");
    } else {
        let detail = answer["detail"].as_str().unwrap();
        assert!(names.iter().all(|known| detail.contains(known)), "{name}: {detail}");
    }
}

/// Where a value is not of the shape of a documented one. Null stands for any.
fn misshapen(place: &str, documented: &Value, sent: &Value) -> Vec<String> {
    match (documented, sent) {
        (Value::Null, _) | (_, Value::Null) => Vec::new(),
        (Value::Object(members), Value::Object(sent)) => {
            let check = |(key, value)| match sent.get(key) {
                Some(sent) => misshapen(&format!("{place}.{key}"), value, sent),
                None => vec![format!("{place}.{key} is missing")],
            };
            members.iter().flat_map(check).collect()
        }
        (Value::Array(documented), Value::Array(sent)) => {
            let first = documented.first();
            first
                .into_iter()
                .flat_map(|first| sent.iter().flat_map(|sent| misshapen(place, first, sent)))
                .collect()
        }
        (documented, sent) if std::mem::discriminant(documented) == std::mem::discriminant(sent) => {
            Vec::new()
        }
        (_, sent) => vec![format!("{place} is {sent}")],
    }
}

#[tokio::test]
async fn events_have_the_documented_fields() {
    let documented: BTreeMap<String, Value> =
        serde_json::from_str(&fs::read_to_string(folder().join("events.json")).unwrap()).unwrap();
    let model = ScriptedOpenAi::start().await.unwrap();
    let entry = json!({"model": "openai/scripted", "api_base": model.url(), "api_key": "none"});
    let mut small = entry.clone();
    small["custom_args"] = json!({"max_context_size": 30_000});
    small["max_tokens"] = json!(1000);
    let list = format!("large: {entry}\nsmall: {small}\n");
    let start = Start::serve().env("LLM_RATE_LIMIT_MAX_WAIT_SECONDS", "0").models(&list).unwrap();
    let server = start.start().await.unwrap();

    let long = "words and words ".repeat(500);
    let turn = |at: usize| {
        [
            json!({"role": "user", "content": format!("{at} {long}")}),
            json!({"role": "assistant", "content": "Noted."}),
        ]
    };
    let history: Vec<_> = std::iter::once(json!({"role": "system", "content": "Be brief."}))
        .chain((0..20).flat_map(turn))
        .collect();
    let chart = json!({"name": "show_chart", "description": "Draws."});
    let mut seen = BTreeMap::new();
    for (script, more) in [
        (json!({"rounds": 1, "say": "I look.", "thinking": "Logs tell."}), json!({})),
        (
            json!({"rounds": 1, "tool": "show_chart", "args": {"chart_type": "line"}}),
            json!({"frontend_tools": [chart]}),
        ),
        (json!({"answer": "short"}), json!({"model": "small", "conversation_history": history})),
        (json!({"status": 429}), json!({})),
    ] {
        let mut body = json!({"ask": format!("why? FAKE_LLM{script}"), "stream": true});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        for frame in client::stream(&server.url("/api/chat").unwrap(), &body).await.unwrap() {
            // A notice of a compaction has only its text, and the count after it is of no call.
            let is_notice = frame.event == "ai_message" && frame.data.get("metadata").is_none();
            if !is_notice {
                seen.entry(frame.event.clone()).or_insert_with(Vec::new).push(frame.data);
            }
        }
    }
    assert_eq!(seen.keys().collect::<Vec<_>>(), documented.keys().collect::<Vec<_>>());
    for (event, payload) in documented {
        for sent in &seen[&event] {
            assert_eq!(misshapen(&event, &payload, sent), [""; 0], "{sent:#}");
        }
    }
}

/// The flows of "Event Flow Examples" that need a client to come back, with the bodies of "Resuming after …": what is
/// printed there, and the history.
#[tokio::test]
async fn a_client_that_comes_back_goes_on_as_documented() {
    let model = ScriptedOpenAi::start().await.unwrap();
    let server = serve(&model, CURRENT[0].1, None).await;
    let url = server.url("/api/chat").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bash =
        |command: &str| json!({"name": "bash", "args": {"command": command, "suggested_prefixes": []}});
    let touch = bash(&format!("touch {}", folder.path().join("mark").display()));
    let chart = json!({"name": "show_chart", "args": {"chart_type": "line", "data_source": "cpu_usage"}});
    let tools = json!([{"name": "show_chart", "description": "Draws."}]);
    for (second, more) in
        [(touch, json!({"enable_tool_approval": true})), (chart, json!({"frontend_tools": tools}))]
    {
        let script = json!({"steps": [[bash("echo safe"), second]], "say": "I look.", "answer": "Done."});
        let mut body = json!({"ask": format!("go FAKE_LLM{script}"), "stream": true});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let frames = client::stream(&url, &body).await.unwrap();
        let names = |frames: &[client::Frame]| -> Vec<String> {
            let names = frames.iter().map(|frame| frame.event.clone());
            names.filter(|name| name != "token_count").collect()
        };
        let results = frames.iter().filter(|frame| frame.event == "tool_calling_result").count();
        let mut order = vec!["ai_message", "start_tool_calling", "start_tool_calling"];
        order.extend(std::iter::repeat_n("tool_calling_result", results));
        order.push("approval_required");
        assert_eq!(names(&frames), order);
        let asked = &frames.last().unwrap().data;
        let mut again = json!({"conversation_history": asked["conversation_history"], "stream": true});
        if let Some(pending) = asked["pending_approvals"].get(0) {
            assert_eq!(results, 2, "also one that says that it waits");
            again["tool_decisions"] = json!([{"tool_call_id": pending["tool_call_id"], "approved": true}]);
        } else {
            let pending = &asked["pending_frontend_tool_calls"][0];
            assert_eq!(pending["arguments"], json!({"chart_type": "line", "data_source": "cpu_usage"}));
            let result = "{\"rendered\": true, \"data_points\": 42}";
            again["frontend_tool_results"] = json!([{"tool_call_id": pending["tool_call_id"], "tool_name": "show_chart", "result": result}]);
        }
        let frames = client::stream(&url, &again).await.unwrap();
        assert_eq!(names(&frames), ["tool_calling_result", "ai_answer_end"]);
        assert_eq!(frames[0].data["result"]["error"], Value::Null, "{}", frames[0].data);
        assert_eq!(frames.last().unwrap().data["analysis"], "Done.");
    }
    assert!(folder.path().join("mark").exists(), "what was approved was done");
}

#[tokio::test]
async fn any_name_of_the_list_is_a_model() {
    let model = ScriptedOpenAi::start().await.unwrap();
    let examples = examples("older");
    for (_, names) in OLDER {
        let server = serve(&model, names, None).await;
        for path in ["investigate", "issue_chat", "workload_health_check", "workload_health_chat", "chat"] {
            let example = &examples[path];
            for name in names {
                let mut body = example.body.clone();
                if path == "workload_health_check" {
                    let verdict = json!({"workload_healthy": true, "root_cause_summary": "fine"});
                    body["ask"] = json!(format!("healthy? FAKE_LLM{}", json!({ "answer": verdict })));
                }
                body["model"] = json!(name);
                let (status, answer) =
                    client::post(&server.url(&example.path).unwrap(), &body).await.unwrap();
                assert_eq!(status, 200, "{path}, {name}: {answer}");
            }
        }
    }
}

#[tokio::test]
async fn an_investigation_has_the_documented_sections_and_calls() {
    let model = ScriptedOpenAi::start().await.unwrap();
    let server = serve(&model, OLDER[0].1, None).await;
    let titles = [
        "Alert Explanation",
        "Key Findings",
        "Conclusions and Possible Root Causes",
        "Next Steps",
        "App or Infra?",
        "External links",
    ];
    let sections: Value = titles.iter().map(|title| (title.to_lowercase(), json!("…"))).collect();
    let mut example = examples("older").remove("stream_investigate").unwrap();
    let script = json!({"rounds": 1, "tools": 2, "answer": sections});
    example.body["description"] = json!(format!("Pod is crashing repeatedly FAKE_LLM{script}"));
    let expected: Value = titles.iter().map(|title| (*title, "…")).collect();

    let (_, events) = send(&server, &example).await;
    let names: Vec<_> =
        events.as_array().unwrap().iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "token_count",
            "start_tool_calling",
            "start_tool_calling",
            "tool_calling_result",
            "tool_calling_result",
            "token_count",
            "ai_answer_end",
        ]
    );
    assert_eq!(events[6]["data"]["sections"], expected);
    let call = json!({"tool_name": "bash", "id": "$string"});
    let result = json!({
        "tool_call_id": "$string", "role": "tool", "description": "$string", "name": "bash",
        "result": {"status": "success", "data": "$string", "error": null, "params": "$object"},
    });
    assert_eq!(facts::lacking(&call, &events[1]["data"]), []);
    assert_eq!(facts::lacking(&result, &events[3]["data"]), []);

    let (_, whole) = client::post(&server.url("/api/investigate").unwrap(), &example.body).await.unwrap();
    assert_eq!(whole["sections"], expected);
    assert!(whole["analysis"].as_str().unwrap().starts_with("# Alert Explanation\n…\n\n# Key Findings\n"));
    let call = json!({"tool_call_id": "$string", "tool_name": "bash", "description": "$string", "result": "$object"});
    for shown in whole["tool_calls"].as_array().unwrap() {
        assert_eq!(facts::lacking(&call, shown), []);
    }
}

#[tokio::test]
async fn the_builtin_model_answers_in_the_form_that_was_asked_for() {
    let Some(kubeconfig) = cluster() else { return };
    let server = Start::serve().env("KUBECONFIG", kubeconfig).start().await.unwrap();
    let issue = json!({
        "source": "prometheus", "title": "KubePodCrashLooping", "description": "A pod crashes again and again.",
        "subject": {"kind": "Deployment", "name": "ledger-writer", "namespace": "payments"}, "context": {},
    });
    let (_, found) = client::post(&server.url("/api/investigate").unwrap(), &issue).await.unwrap();
    let cause = found["sections"]["Likely cause"].as_str();
    assert!(cause.is_some_and(|cause| cause.contains("DATABASE_URL")), "{found}");

    for (namespace, name, healthy, summary) in
        [("search", "indexer", false, "OOMKilled"), ("payments", "payments-api", true, "nothing wrong")]
    {
        let resource = json!({"kind": "Deployment", "name": name, "namespace": namespace});
        let body = json!({"ask": "Is it healthy?", "resource": resource});
        let url = server.url("/api/workload_health_check").unwrap();
        let (_, checked) = client::post(&url, &body).await.unwrap();
        let verdict: Value = serde_json::from_str(checked["analysis"].as_str().unwrap()).unwrap();
        assert_eq!(verdict["workload_healthy"], healthy, "{checked}");
        assert!(verdict["root_cause_summary"].as_str().unwrap().contains(summary), "{checked}");
    }
}
