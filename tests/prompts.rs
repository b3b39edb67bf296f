//! What a model is told, seen from the model: sections, runbooks, additions.

#![cfg(test)]

use std::fs;

use harness::{
    client,
    models::{ScriptedAnthropic, ScriptedOpenAi},
    process::{Sleuth, Start},
};
use serde_json::{Value, json};

/// A few words of each section that no other part of a request has.
const SYSTEM: [(&str, &str); 9] = [
    ("intro", "You are Sleuth"),
    ("ask_user", "# When to ask back"),
    ("general_instructions", "# How to investigate"),
    ("cluster_name", "the Kubernetes cluster `prod-1`"),
    ("todowrite_instructions", "# Planning with TodoWrite"),
    ("toolset_instructions", "# Toolsets"),
    ("permission_errors", "# Missing permissions"),
    ("style_guide", "# How to answer"),
    ("system_prompt_additions", "Answer in French."),
];
const USER: [(&str, &str); 2] =
    [("todowrite_reminder", "plan it with `TodoWrite` first"), ("time_runbooks", "- `crash-loop`: ")];
const SAFETY: (&str, &str) = ("ai_safety", "# Safety");

struct Bench {
    openai: ScriptedOpenAi,
    sleuth: Sleuth,
}

/// What the model got with the first call of a run.
struct Told {
    system: Option<String>,
    user: String,
}

impl Told {
    fn read(request: &Value) -> Self {
        let content = |role: &str| {
            let messages = request["messages"].as_array().unwrap().iter();
            let text = messages.rev().find(|message| message["role"] == role)?["content"].as_str();
            text.map(str::to_owned)
        };
        Self { system: content("system"), user: content("user").unwrap() }
    }

    /// The sections that it has.
    fn sections(&self) -> Vec<&'static str> {
        let has = |text: &str, (key, words): (&'static str, &str)| text.contains(words).then_some(key);
        let system = self.system.as_deref().unwrap_or_default();
        let system = SYSTEM.into_iter().chain([SAFETY]).filter_map(|section| has(system, section));
        system.chain(USER.into_iter().filter_map(|section| has(&self.user, section))).collect()
    }
}

impl Bench {
    async fn start(change: impl FnOnce(Start) -> Start) -> Self {
        let openai = ScriptedOpenAi::start().await.unwrap();
        let list = format!("gpt: {{model: openai/gpt-4.1, api_key: none, base_url: {}}}\n", openai.url());
        let start = Start::serve().env("CLUSTER_NAME", "prod-1").models(&list).unwrap();
        Self { openai, sleuth: change(start).start().await.unwrap() }
    }

    async fn chat(&self, body: Value) -> Value {
        let (status, answer) = client::post(&self.sleuth.url("/api/chat").unwrap(), &body).await.unwrap();
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// What the model is told with these controls.
    async fn told(&self, controls: Value) -> Told {
        let before = self.openai.requests().len();
        self.chat(json!({
            "ask": "why? FAKE_LLM{}",
            "additional_system_prompt": "Answer in French.",
            "behavior_controls": controls,
        }))
        .await;
        Told::read(&self.openai.requests()[before].body)
    }
}

fn default_sections() -> Vec<&'static str> {
    SYSTEM.into_iter().chain(USER).map(|(key, _)| key).collect()
}

#[tokio::test]
async fn requests_switch_sections() {
    let bench = Bench::start(|start| start).await;
    let told = bench.told(Value::Null).await;
    assert_eq!(told.sections(), default_sections());
    assert!(told.system.unwrap().ends_with("\n\nAnswer in French."));
    assert!(told.user.starts_with("why? FAKE_LLM{}\n\n# Added by Sleuth\n\n"), "{}", told.user);

    for key in default_sections() {
        let rest: Vec<_> = default_sections().into_iter().filter(|other| *other != key).collect();
        assert_eq!(bench.told(json!({ key: false })).await.sections(), rest, "{key}");
    }
    let alias = bench.told(json!({ "Time_Skills": "off", "no_such_section": true })).await;
    assert!(!alias.sections().contains(&"time_runbooks"));
    assert!(bench.sleuth.log().iter().any(|line| line.contains("no_such_section")), "no warning");
    assert!(bench.told(json!({ "ai_safety": true })).await.sections().contains(&"ai_safety"));

    let all_off: serde_json::Map<_, _> =
        default_sections().into_iter().map(|key| (key.to_owned(), Value::Bool(false))).collect();
    let told = bench.told(Value::Object(all_off)).await;
    assert_eq!((told.system, told.user.as_str()), (None, "why? FAKE_LLM{}"));
}

#[tokio::test]
async fn enabled_prompts_bound_what_requests_switch() {
    let only =
        Bench::start(|start| start.env("ENABLED_PROMPTS", "intro, AI_SAFETY ,todowrite_reminder")).await;
    let enabled = ["intro", "ai_safety", "todowrite_reminder"];
    assert_eq!(only.told(Value::Null).await.sections(), enabled);
    assert_eq!(only.told(json!({ "style_guide": true, "intro": true })).await.sections(), enabled);
    assert_eq!(only.told(json!({ "ai_safety": false })).await.sections(), ["intro", "todowrite_reminder"]);

    let none = Bench::start(|start| start.arg("--enabled-prompts=none")).await;
    let told = none.told(json!({ "intro": true, "system_prompt_additions": true })).await;
    assert_eq!((told.system, told.user.as_str()), (None, "why? FAKE_LLM{}"));

    let unset = Bench::start(|start| start.env("ENABLED_PROMPTS", "")).await;
    assert_eq!(unset.told(Value::Null).await.sections(), default_sections());
}

#[tokio::test]
async fn the_system_prompt_is_the_same_over_a_run() {
    let bench = Bench::start(|start| start).await;
    bench.chat(json!({ "ask": r#"look FAKE_LLM{"rounds": 2}"# })).await;
    let systems: Vec<_> =
        bench.openai.requests().iter().map(|request| Told::read(&request.body).system.unwrap()).collect();
    assert_eq!(systems.len(), 3);
    assert!(systems.windows(2).all(|pair| pair[0] == pair[1]));
}

#[tokio::test]
async fn without_any_section_anthropic_gets_no_system_prompt_either() {
    let anthropic = ScriptedAnthropic::start().await.unwrap();
    let list = format!(
        "claude: {{model: anthropic/claude-sonnet-4-5, api_key: none, base_url: {}}}\n",
        anthropic.url()
    );
    let sleuth = Start::serve().models(&list).unwrap().arg("--enabled-prompts=none").start().await.unwrap();
    let (status, answer) =
        client::post(&sleuth.url("/api/chat").unwrap(), &json!({ "ask": "why? FAKE_LLM{}" })).await.unwrap();
    assert_eq!(status, 200, "{answer}");
    assert_eq!(anthropic.requests()[0].body.get("system"), None);
}

#[tokio::test]
async fn the_builtin_investigator_reads_only_the_question() {
    let bench = Bench::start(|start| start).await;
    let ask = async |controls: Value| {
        bench
            .chat(json!({ "ask": "what is 2+2", "model": "builtin/triage", "behavior_controls": controls }))
            .await
    };
    let bare = json!({ "todowrite_reminder": false, "time_runbooks": false });
    let [told, bare] = [ask(Value::Null).await, ask(bare).await];
    assert_eq!(told["analysis"], bare["analysis"]);
    assert_eq!(told["tool_calls"], json!([]), "it looked for something");
}

#[tokio::test]
async fn runbooks_are_listed_and_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let skill = |name: &str, text: &str| {
        fs::create_dir(folder.path().join(name)).unwrap();
        let text = format!("---\nname: {name}\ndescription: \"Ours: {name}.\"\n---\n{text}\n");
        fs::write(folder.path().join(name).join("SKILL.md"), text).unwrap();
    };
    skill("kafka-lag", "Look at the consumer groups.");
    skill("storage", "Ask the storage team.");
    let bench = Bench::start(|start| start.arg("--runbooks").arg(folder.path())).await;
    let fetch = |id: &str| json!({ "name": "fetch_runbook", "args": { "runbook_id": id } });
    let steps = json!([
        [fetch("kafka-lag"), fetch("storage"), fetch("dns-failure"), fetch("../../etc/passwd")],
        [fetch("kafka-lag")],
    ]);
    let answer = bench.chat(json!({ "ask": format!("look FAKE_LLM{}", json!({ "steps": steps })) })).await;

    let told = Told::read(&bench.openai.requests()[0].body);
    for line in ["- `kafka-lag`: Ours: kafka-lag.", "- `storage`: Ours: storage.", "- `crash-loop`: "] {
        assert!(told.user.contains(line), "{line}: {}", told.user);
    }
    let offered = bench.openai.requests()[0].body["tools"].to_string();
    assert!(offered.contains(r#""name":"fetch_runbook""#), "{offered}");

    let calls = answer["tool_calls"].as_array().unwrap();
    let of = |id: &str| {
        let found = calls.iter().find(|call| call["result"]["params"]["runbook_id"] == id);
        &found.unwrap_or_else(|| panic!("{id}: {calls:#?}"))["result"]
    };
    assert_eq!(of("kafka-lag")["status"], "success");
    assert!(of("kafka-lag")["data"].as_str().unwrap().contains("Look at the consumer groups."));
    assert!(of("storage")["data"].as_str().unwrap().contains("Ask the storage team."), "ours replaces");
    assert!(of("dns-failure")["data"].as_str().unwrap().contains("CoreDNS"));
    let refused = of("../../etc/passwd");
    assert_eq!(refused["status"], "error");
    assert!(refused["error"].as_str().unwrap().contains("kafka-lag, "), "{refused}");
    assert!(calls.iter().all(|call| call["toolset_name"] == "runbook"), "{calls:#?}");
    let again = calls.last().unwrap();
    assert_eq!(again["result"]["status"], "error", "the second reading is a repetition: {again}");
}

#[tokio::test]
async fn files_reach_the_model_as_what_they_are() {
    let openai = ScriptedOpenAi::start().await.unwrap();
    let list = format!("gpt: {{model: openai/gpt-4.1, api_key: none, base_url: {}}}\n", openai.url());
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "ERROR ```disk full```\n").unwrap();
    let ask = Start::new(["ask", "why? FAKE_LLM{}", "--fast-mode", "--file"]).arg(file.path());
    let output = ask.models(&list).unwrap().command().unwrap().output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = Told::read(&openai.requests()[0].body);
    assert!(told.user.contains("````\nERROR ```disk full```\n````"), "{}", told.user);
    assert!(!told.sections().iter().any(|section| section.starts_with("todowrite")), "{:?}", told.sections());
}

#[tokio::test]
async fn a_folder_without_runbooks_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let start = Start::serve().arg("--runbooks").arg(folder.path()).start().await;
    let error = start.err().unwrap().to_string();
    assert!(error.contains("no runbook in it"), "{error}");
}
