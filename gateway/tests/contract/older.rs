//! What clients of the older HolmesGPT dialect send and get.

use domain::{EventKind, FailureCode, Gate, Message, Role, ToolResult, ToolStatus};
use gateway::Config;
use serde_json::{Value, json};

use crate::{
    agent::Act,
    conversation::{call, counted, finished, plain, said, started, with_tools},
    world::{World, json as reply},
};

fn issue() -> Value {
    json!({
        "source": "prometheus", "title": "KubePodCrashLooping", "description": "It crashes.",
        "subject": {"namespace": "shop", "name": "web-0"}, "context": {"labels": {"severity": "high"}},
    })
}

fn check() -> Value {
    json!({"ask": "Is it healthy?", "resource": {"name": "web", "kind": "Deployment"}})
}

fn issue_chat() -> Value {
    json!({"ask": "And now?", "investigation_result": {"result": "Out of memory."}, "issue_type": "Crash"})
}

/// A body with some members changed.
fn with(mut body: Value, members: Value) -> Value {
    let (Value::Object(all), Value::Object(members)) = (&mut body, members) else { panic!("objects") };
    all.extend(members);
    body
}

async fn world(events: Vec<EventKind>) -> World {
    World::new(Config::default(), Act::Play(events)).await
}

/// A run that answers this.
fn answering(answer: &str) -> Vec<EventKind> {
    let question = Message::text(Role::User, "why?");
    vec![started(vec![question]), counted(1), said(Message::text(Role::Assistant, answer)), finished(answer)]
}

async fn post(world: &World, path: &str, body: &Value) -> (u16, Value) {
    reply(world.post(path, &body.to_string())).await
}

/// Names and data of a stream.
async fn stream(world: &World, path: &str, body: &Value) -> Vec<(String, Value)> {
    let text = world.post(path, &body.to_string()).send().await.unwrap().text().await.unwrap();
    let frame = |frame: &str| {
        let mut lines = frame.lines();
        let mut field = |name| lines.next().unwrap().strip_prefix(name).unwrap().to_owned();
        (field("event: "), serde_json::from_str(&field("data: ")).unwrap())
    };
    text.split_terminator("\n\n").map(frame).collect()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn an_issue_becomes_a_question() {
    let world = world(plain()).await;
    let body = with(issue(), json!({"model": "second", "source_instance_id": "eu-1"}));
    assert_eq!(post(&world, "/api/investigate", &body).await.0, 200);
    let asked = world.agent.question();
    assert_eq!(
        asked.question,
        "Investigate this issue: KubePodCrashLooping\n\nIt crashes.\n\n## Subject\n\nweb-0 in namespace shop\n\n\
         ## Context\n\n- labels: {\"severity\":\"high\"}\n\nReported by prometheus (eu-1)."
    );
    assert_eq!(asked.model, "second");
    assert!(asked.additional_system_prompt.contains("- Alert Explanation: "));
    assert!(asked.response_format_json.is_empty());
}

#[tokio::test]
async fn sections_of_the_client_replace_the_default_ones() {
    let answer = "# cause\nNo memory.\n\n## Detail\nMuch.\n\n# Other\nx";
    let world = world(answering(answer)).await;
    // In the order of the client, which is not that of the alphabet.
    let body =
        issue().to_string().replacen('{', r#"{"sections": {"Zeal": "How sure.", "Cause": "Why."}, "#, 1);
    let text = world.post("/api/investigate", &body).send().await.unwrap().text().await.unwrap();
    assert!(
        text.contains(r###""sections":{"Zeal":null,"Cause":"No memory.\n\n## Detail\nMuch.","Other":"x"}"###),
        "{text}"
    );
    let asked = world.agent.question();
    assert!(asked.additional_system_prompt.ends_with("- Zeal: How sure.\n- Cause: Why."));
    assert!(!asked.additional_system_prompt.contains("Next Steps"));
}

#[tokio::test]
async fn json_becomes_sections_and_markdown() {
    let answer = "```json\n{\"key findings\": [\"a\", \"b\"], \"Next Steps\": \"c\", \"External links\": [], \"More\": 1}\n```";
    let world = world(answering(answer)).await;
    let (_, body) = post(&world, "/api/investigate", &issue()).await;
    assert_eq!(body["analysis"], "# Key Findings\na\n\nb\n\n# Next Steps\nc\n\n# More\n1\n");
    assert_eq!(
        body["sections"],
        json!({
            "Alert Explanation": null, "Key Findings": "a\n\nb", "Conclusions and Possible Root Causes": null,
            "Next Steps": "c", "App or Infra?": null, "External links": null, "More": "1",
        })
    );
}

#[tokio::test]
async fn an_answer_without_headings_has_no_sections() {
    for (answer, sections) in [
        ("All is well.", json!(null)),
        ("{\"unasked\": 1}", json!(null)),
        ("## Mine\nx\n### Sub\ny\n## Too\nz", json!({"Mine": "x\n### Sub\ny", "Too": "z"})),
        ("Mine\n====\n```\n# no heading\n```", json!({"Mine": "```\n# no heading\n```"})),
    ] {
        let world = world(answering(answer)).await;
        let (_, body) = post(&world, "/api/investigate", &issue()).await;
        assert_eq!((&body["sections"], body["analysis"].as_str()), (&sections, Some(answer)));
        let streamed = stream(&world, "/api/stream/investigate", &issue()).await;
        let expected = if sections.is_null() { json!({}) } else { sections };
        assert_eq!(streamed.last().unwrap().1["sections"], expected, "{answer}");
    }
}

#[tokio::test]
async fn an_investigation_streams_one_count_for_each_model_call() {
    let world = world(with_tools()).await;
    let frames = stream(&world, "/api/stream/investigate", &issue()).await;
    let names: Vec<_> = frames.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "token_count",
            "ai_message",
            "start_tool_calling",
            "start_tool_calling",
            "tool_calling_result",
            "tool_calling_result",
            "token_count",
            "ai_answer_end",
        ]
    );
    for (name, data) in frames.iter().filter(|(_, data)| data.get("metadata").is_some()) {
        assert_eq!(data["metadata"]["truncations"], json!([]), "{name}");
    }
    assert_eq!(keys(&frames.last().unwrap().1), ["analysis", "instructions", "metadata", "sections"]);
}

#[tokio::test]
async fn tool_calls_and_results_are_left_out_on_request() {
    let world = world(with_tools()).await;
    for (switches, calls, results) in [
        (json!({}), 2, true),
        (json!({"include_tool_calls": true, "include_tool_call_results": "yes"}), 2, true),
        (json!({"include_tool_call_results": false}), 2, false),
        (json!({"include_tool_calls": false}), 0, false),
    ] {
        let body = with(issue(), switches.clone());
        let (_, whole) = post(&world, "/api/investigate", &body).await;
        let shown = whole["tool_calls"].as_array().unwrap();
        assert_eq!(shown.len(), calls, "{switches}");
        assert!(shown.iter().all(|call| call["result"].is_object() == results), "{switches}");
        let (_, checked) = post(&world, "/api/workload_health_check", &with(check(), switches.clone())).await;
        assert_eq!(checked["tool_calls"], whole["tool_calls"], "{switches}");

        let frames = stream(&world, "/api/stream/investigate", &body).await;
        let of = |name: &str| frames.iter().filter(|(event, _)| event == name).collect::<Vec<_>>();
        assert_eq!(of("start_tool_calling").len(), calls, "{switches}");
        let shown = of("tool_calling_result");
        assert_eq!(shown.len(), calls, "{switches}");
        assert!(shown.iter().all(|(_, data)| data["result"].is_object() == results), "{switches}");
        assert_eq!(of("token_count").len(), 2, "{switches}");
    }
}

#[tokio::test]
async fn cuts_and_runbooks_of_the_run_are_named() {
    let fetch = call("c1", "fetch_runbook", r#"{"runbook_id":"oom.md"}"#);
    let result = ToolResult {
        status: ToolStatus::Success,
        data: "Look at the limits.\n\n[TRUNCATED]".to_owned(),
        error: None,
        omitted_bytes: 190,
        ..ToolResult::error("")
    };
    let starts = EventKind::ToolStarted {
        call: fetch.clone(),
        description: String::new(),
        toolset: None,
        cluster: None,
        gate: Gate::Open,
        by: None,
    };
    let ends = EventKind::ToolFinished { call: fetch.id, result };
    let mut begun = started(Vec::new());
    if let EventKind::RunStarted(started) = &mut begun {
        started.runbooks = vec!["crash-loop".to_owned()];
    }
    let events = vec![begun, counted(1), starts, ends, counted(1), finished("{}")];
    let world = world(events).await;
    let (_, body) = post(&world, "/api/investigate", &issue()).await;
    assert_eq!(body["instructions"], json!(["crash-loop", "oom.md"]));
    assert_eq!(
        body["metadata"]["truncations"],
        json!([{
            "tool_call_id": "c1", "start_index": 0, "end_index": 19, "tool_name": "fetch_runbook",
            "original_token_count": 44,
        }])
    );
    let body = with(check(), json!({"instructions": ["Look at the nodes."]}));
    let (_, body) = post(&world, "/api/workload_health_check", &body).await;
    assert_eq!(body["instructions"], json!(["Look at the nodes.", "oom.md"]));
}

#[tokio::test]
async fn a_health_check_asks_for_a_verdict() {
    let world = world(answering("```json\n{\"workload_healthy\": true}\n```")).await;
    let body = with(
        check(),
        json!({"instructions": ["Look at the nodes."], "alert_history_since_hours": 12, "stored_instructions": false}),
    );
    let (status, body) = post(&world, "/api/workload_health_check", &body).await;
    assert_eq!((status, &body["analysis"]), (200, &json!("{\"workload_healthy\": true}")));
    assert_eq!(keys(&body), ["analysis", "instructions", "metadata", "sections", "tool_calls"]);
    assert_eq!((&body["sections"], &body["instructions"]), (&json!(null), &json!(["Look at the nodes."])));
    let asked = world.agent.question();
    assert_eq!(
        asked.question,
        "Is it healthy?\n\n## Workload\n\nDeployment web\n\n## Instructions\n\n- Look at the nodes."
    );
    let alerts = asked.alert_history.unwrap();
    assert_eq!((alerts.name.as_str(), alerts.namespace.as_str(), alerts.since_hours), ("web", "", 12.0));
    assert!(asked.response_format_json.contains("workload_healthy"));
    assert_eq!(asked.behavior_controls, [("time_runbooks".to_owned(), false)].into());
}

#[tokio::test]
async fn alert_history_and_stored_instructions_can_be_switched() {
    for (switches, alerts, runbooks) in [
        (json!({}), true, true),
        (json!({"alert_history": false}), false, true),
        (json!({"stored_instrucitons": false}), true, false),
    ] {
        let world = world(plain()).await;
        assert_eq!(post(&world, "/api/workload_health_check", &with(check(), switches.clone())).await.0, 200);
        let asked = world.agent.question();
        assert_eq!(
            asked.alert_history.map(|alerts| alerts.since_hours),
            alerts.then_some(24.0),
            "{switches}"
        );
        assert_eq!(asked.behavior_controls.is_empty(), runbooks, "{switches}");
    }
}

#[tokio::test]
async fn what_was_found_earlier_is_for_the_model_alone() {
    let workload_chat = json!({
        "ask": "And now?", "resource": {"name": "web"},
        "workload_health_result": {"result": "Out of memory.", "tools": [{"tool_name": "bash", "description": "top", "result": {"data": "x"}}]},
    });
    for (path, body, question) in [
        ("/api/issue_chat", issue_chat(), "Investigate this issue: Crash"),
        ("/api/workload_health_chat", workload_chat, "Is this workload healthy?\n\n## Workload\n\nweb"),
    ] {
        let world = world(plain()).await;
        let history = json!([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "a"},
                             {"role": "assistant", "content": "b"}]);
        let body = with(body, json!({ "conversation_history": history }));
        let (status, answer) = post(&world, path, &body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        assert_eq!(
            keys(&answer),
            [
                "analysis",
                "conversation_history",
                "follow_up_actions",
                "metadata",
                "pending_approvals",
                "tool_calls"
            ]
        );
        assert_eq!(answer["follow_up_actions"], json!([]), "{path}");
        let asked = world.agent.question();
        assert_eq!(asked.question, "And now?", "{path}");
        let messages: Vec<Message> =
            asked.history.into_iter().map(|message| message.try_into().unwrap()).collect();
        let texts: Vec<_> = messages.iter().map(Message::joined_text).collect();
        assert_eq!([&texts[0], &texts[1], &texts[3], &texts[4]], ["Be kind.", question, "a", "b"], "{path}");
        assert!(texts[2].starts_with("Out of memory."), "{path}: {}", texts[2]);
        assert_eq!(
            texts[2].contains("## bash: top\n\n{\"data\":\"x\"}"),
            path.contains("workload"),
            "{path}"
        );

        // The agent gives the whole conversation back; the client gets its own part.
        let world = self::world(vec![started(messages), finished("so")]).await;
        let (_, answer) = post(&world, path, &body).await;
        assert_eq!(answer["conversation_history"], history, "{path}");
    }
}

#[tokio::test]
async fn templates_are_texts_or_names() {
    let world = world(plain()).await;
    for (path, body) in [("/api/investigate", issue()), ("/api/workload_health_check", check())] {
        for (template, reason) in [
            (
                "file:///etc/passwd",
                "prompt_template: files are not read; send the text of the template, or builtin://NAME",
            ),
            ("{{ nope }}", "prompt_template: nothing is named `nope` here; there are: "),
            (
                "builtin://nope.jinja2",
                "prompt_template: there is no builtin template `nope.jinja2`; there are: ",
            ),
        ] {
            let (status, said) =
                post(&world, path, &with(body.clone(), json!({"prompt_template": template}))).await;
            assert!(
                status == 400 && said["detail"].as_str().unwrap().starts_with(reason),
                "{template}: {said}"
            );
        }
    }
    assert!(world.agent.asked.lock().unwrap().is_empty());
    let body = with(issue(), json!({"prompt_template": "Be brief about {{ title }}."}));
    assert_eq!(post(&world, "/api/investigate", &body).await.0, 200);
    let system = world.agent.question().additional_system_prompt;
    assert!(
        system.starts_with("Be brief about KubePodCrashLooping.\n\n# Sections of the answer\n"),
        "{system}"
    );
}

#[tokio::test]
async fn failures_are_told_in_both_ways() {
    for (code, error_code, status) in [
        (FailureCode::RateLimited { retry_after: None }, 5204, 429),
        (FailureCode::Unauthenticated, 1, 401),
        (FailureCode::ModelUnavailable, 1, 500),
    ] {
        let end = EventKind::RunFailed { code, message: "no".to_owned() };
        let world = world(vec![started(Vec::new()), end]).await;
        for (path, body) in [
            ("/api/investigate", issue()),
            ("/api/issue_chat", issue_chat()),
            ("/api/workload_health_check", check()),
        ] {
            assert_eq!(post(&world, path, &body).await, (status, json!({"detail": "no"})), "{path}");
        }
        for (path, body) in [("/api/stream/investigate", issue()), ("/api/stream/issue_chat", issue_chat())] {
            let frames = stream(&world, path, &body).await;
            assert_eq!((frames.len(), frames[0].0.as_str()), (1, "error"), "{path}");
            assert_eq!(frames[0].1["error_code"], error_code, "{path}");
        }
    }
}

#[tokio::test]
async fn aliases_always_stream() {
    let world = world(plain()).await;
    let chat = stream(&world, "/api/stream/chat", &json!({"ask": "x", "stream": false})).await;
    assert_eq!(chat.last().unwrap().0, "ai_answer_end");
    let tool = json!({"name": "ask_me", "description": "Asks.", "mode": "pause"});
    let paused = stream(&world, "/api/stream/chat", &json!({"ask": "x", "frontend_tools": [tool]})).await;
    assert_eq!(paused.last().unwrap().0, "ai_answer_end", "a tool that needs a stream");
    assert_eq!(chat.last().unwrap().1["follow_up_actions"].as_array().unwrap().len(), 3);
    let issue = stream(&world, "/api/stream/issue_chat", &issue_chat()).await;
    let (name, data) = issue.last().unwrap();
    assert_eq!(name, "ai_answer_end");
    assert_eq!(keys(data), ["analysis", "conversation_history", "follow_up_actions", "metadata"]);
    assert_eq!(data["metadata"]["truncations"], json!([]));
}

#[tokio::test]
async fn mistakes_are_named_with_their_place() {
    let world = world(plain()).await;
    let rows = [
        (
            "/api/investigate",
            json!({}),
            vec![
                ("missing", json!(["body", "source"])),
                ("missing", json!(["body", "title"])),
                ("missing", json!(["body", "description"])),
                ("missing", json!(["body", "subject"])),
                ("missing", json!(["body", "context"])),
            ],
        ),
        (
            "/api/stream/investigate",
            with(
                issue(),
                json!({
                    "source": 1, "subject": [], "context": "x", "source_instance_id": 2, "include_tool_calls": null,
                    "include_tool_call_results": "maybe", "prompt_template": {}, "sections": {"A": 1}, "model": [],
                }),
            ),
            vec![
                ("string_type", json!(["body", "source"])),
                ("dict_type", json!(["body", "subject"])),
                ("dict_type", json!(["body", "context"])),
                ("string_type", json!(["body", "source_instance_id"])),
                ("bool_type", json!(["body", "include_tool_calls"])),
                ("bool_parsing", json!(["body", "include_tool_call_results"])),
                ("string_type", json!(["body", "prompt_template"])),
                ("string_type", json!(["body", "sections", "A"])),
                ("string_type", json!(["body", "model"])),
            ],
        ),
        (
            "/api/investigate",
            with(issue(), json!({"sections": []})),
            vec![("dict_type", json!(["body", "sections"]))],
        ),
        (
            "/api/issue_chat",
            json!({"investigation_result": {"result": 1, "tools": [2]}, "issue_type": 3}),
            vec![
                ("missing", json!(["body", "ask"])),
                ("string_type", json!(["body", "investigation_result", "result"])),
                ("model_attributes_type", json!(["body", "investigation_result", "tools", 0])),
                ("string_type", json!(["body", "issue_type"])),
            ],
        ),
        (
            "/api/issue_chat",
            with(issue_chat(), json!({"investigation_result": "x"})),
            vec![("model_attributes_type", json!(["body", "investigation_result"]))],
        ),
        (
            "/api/issue_chat",
            with(issue_chat(), json!({"conversation_history": [{"role": "user"}]})),
            vec![("value_error", json!(["body"]))],
        ),
        (
            "/api/workload_health_check",
            json!({
                "ask": 1, "alert_history_since_hours": "soon", "alert_history": 7, "stored_instructions": [],
                "instructions": ["a", 2],
            }),
            vec![
                ("string_type", json!(["body", "ask"])),
                ("missing", json!(["body", "resource"])),
                ("float_parsing", json!(["body", "alert_history_since_hours"])),
                ("bool_parsing", json!(["body", "alert_history"])),
                ("bool_type", json!(["body", "stored_instructions"])),
                ("string_type", json!(["body", "instructions", 1])),
            ],
        ),
        (
            "/api/workload_health_check",
            with(check(), json!({"alert_history_since_hours": true})),
            vec![("float_type", json!(["body", "alert_history_since_hours"]))],
        ),
        (
            "/api/workload_health_check",
            with(check(), json!({"alert_history_since_hours": -1})),
            vec![("value_error", json!(["body", "alert_history_since_hours"]))],
        ),
        (
            "/api/workload_health_chat",
            json!({"ask": "x", "workload_health_result": {"tools": 1}}),
            vec![
                ("list_type", json!(["body", "workload_health_result", "tools"])),
                ("missing", json!(["body", "resource"])),
            ],
        ),
    ];
    for (path, body, errors) in rows {
        let (status, said) = post(&world, path, &body).await;
        assert_eq!(status, 422, "{path}: {said}");
        let said: Vec<_> = said["detail"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| (error["type"].as_str().unwrap(), error["loc"].clone()))
            .collect();
        assert_eq!(said, errors, "{path} {body}");
    }
    assert!(world.agent.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn hostile_bodies_are_bounded() {
    let world = world(plain()).await;
    let many: serde_json::Map<_, _> = (0..101).map(|number| (number.to_string(), json!("x"))).collect();
    assert_eq!(post(&world, "/api/investigate", &with(issue(), json!({"sections": many}))).await.0, 422);
    let depth = 100_000;
    let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let body = with(issue(), json!({"subject": {"a": 1}}))
        .to_string()
        .replace("{\"a\":1}", &format!("{{\"a\":{nested}}}"));
    assert_eq!(reply(world.post("/api/investigate", &body)).await.0, 200);
    let long = json!({"name": "bash", "description": "logs", "output": "ä".repeat(100_000)});
    let body = with(issue_chat(), json!({"investigation_result": {"tools": [long]}}));
    world.agent.asked.lock().unwrap().clear();
    assert_eq!(post(&world, "/api/issue_chat", &body).await.0, 200);
    let earlier = Message::try_from(world.agent.question().history[1].clone()).unwrap().joined_text();
    assert!(earlier.starts_with("(The result was not kept.)") && earlier.ends_with("ä\n\n[TRUNCATED]"));
    assert!(earlier.chars().count() < 10_100);
}
