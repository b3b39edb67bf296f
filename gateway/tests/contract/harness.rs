//! The harness dialect: its events with their fields, ids and order, and what it refuses.

use domain::{
    AgentId, Approval, CallId, EventKind, FailureCode, Gate, MessageId, ModelCalled, OutputStream,
    Permission, Role, RunId, RunStarted, ToolCall, ToolEffect, ToolResult, ToolStatus, Usage, UsageReported,
};
use gateway::Config;
use grants::SigningKey;
use serde_json::{Value, json};

use crate::{
    agent::{Act, Told},
    conversation::{call, finished, started},
    world::{World, events, json as reply},
};

pub(crate) fn config() -> Config {
    let key: SigningKey = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE".parse().unwrap();
    Config { signing_key: Some(key), ..Config::default() }
}

pub(crate) fn ask(world: &World, more: &Value) -> reqwest::RequestBuilder {
    let mut body = json!({"messages": [{"role": "user", "content": "why?"}]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world.post("/chat", &body.to_string())
}

fn called(step: u32) -> EventKind {
    let message = message(step);
    EventKind::ModelCalled(ModelCalled { message, step, attempt: 1, closing: None })
}

fn message(step: u32) -> MessageId {
    MessageId::new(format!("msg_{step}_1"))
}

fn said(step: u32, text: &str) -> EventKind {
    EventKind::TextDelta { message: message(step), text: text.to_owned() }
}

fn counted() -> EventKind {
    let usage =
        Usage { prompt: 120, completion: 18, cached: Some(64), cache_creation: Some(0), ..Usage::default() };
    EventKind::UsageReported(UsageReported {
        usage,
        totals: domain::Totals::default().plus(usage),
        context: domain::ContextSize::default(),
    })
}

fn starts(call: ToolCall, gate: Gate) -> EventKind {
    EventKind::ToolStarted { call, description: String::new(), toolset: None, cluster: None, gate, by: None }
}

fn ends(call: &str, result: ToolResult) -> EventKind {
    EventKind::ToolFinished { call: CallId::new(call), result }
}

fn ran(code: i32, data: &str) -> ToolResult {
    let status = if code == 0 { ToolStatus::Success } else { ToolStatus::Error };
    let error = (code != 0).then(|| format!("exit code {code}"));
    let elapsed = Some(std::time::Duration::from_millis(5));
    ToolResult {
        status,
        data: data.to_owned(),
        error,
        return_code: Some(code),
        elapsed,
        ..ToolResult::error("")
    }
}

fn bash(id: &str, command: &str) -> ToolCall {
    call(id, "bash", &json!({"command": command}).to_string())
}

fn asked(id: &str) -> EventKind {
    let approval = Approval {
        reason: "it changes something".to_owned(),
        command: "mkdir x".to_owned(),
        target: "host".to_owned(),
        effect: ToolEffect::Mutation,
        prefixes: vec!["mkdir".to_owned()],
        policy: "p1".to_owned(),
    };
    EventKind::ApprovalRequested { call: CallId::new(id), approval }
}

fn allowed(id: &str) -> EventKind {
    let permission =
        Permission { run: RunId::new("run-1"), grant: vec![1], standing: Vec::new(), always: false };
    EventKind::CallAllowed { call: CallId::new(id), permission }
}

async fn play(kinds: Vec<EventKind>) -> Vec<Value> {
    let world = World::new(config(), Act::Play(kinds)).await;
    let events = events(ask(&world, &json!({}))).await;
    events
        .into_iter()
        .map(|(name, data)| {
            assert_eq!(data["type"], name.as_str());
            data
        })
        .collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn is_uuid_7(id: &Value) -> bool {
    id.as_str().is_some_and(|id| id.len() == 36 && id.as_bytes()[14] == b'7')
}

#[tokio::test]
async fn a_run_has_the_documented_events_with_all_their_fields() {
    let events = play(vec![
        started(Vec::new()),
        called(1),
        EventKind::ThinkingDelta { message: message(1), text: "Hm.".to_owned() },
        said(1, "I will "),
        said(1, "look."),
        counted(),
        starts(bash("call_1", "ls -la"), Gate::Open),
        EventKind::ToolOutput {
            call: CallId::new("call_1"),
            stream: OutputStream::Stdout,
            text: "a.txt\n".to_owned(),
        },
        ends("call_1", ran(0, r#"{"exitCode":0,"stdout":"a.txt\n","stderr":""}"#)),
        counted(),
        called(2),
        said(2, "Done."),
        counted(),
        finished("Done."),
    ])
    .await;
    let [connected, start, reasoning, text, more, usage, tool_call, progress, result, answer, last, end] =
        &events[..]
    else {
        panic!("{:?}", names(&events))
    };
    let (run, agent) = (&start["runId"], &start["agentId"]);
    assert!(is_uuid_7(run) && is_uuid_7(agent) && run != agent);
    assert_eq!(*connected, json!({"type": "connected", "sessionId": "run-1"}));
    assert_eq!(
        *start,
        json!({"type": "harness_start", "runId": run, "agentId": agent, "maxIterations": 100})
    );

    let model = &text["runId"];
    assert!(is_uuid_7(model) && model != run);
    let of_model = |kind: &str, id: &Value, content: &str| json!({"type": kind, "runId": model, "id": id, "agentId": agent, "parentId": run, "content": content});
    assert_eq!(*reasoning, of_model("reasoning", &reasoning["id"], "Hm."));
    assert_eq!(*text, of_model("text", &text["id"], "I will "));
    assert_eq!(*more, of_model("text", &text["id"], "look."), "pieces of one text have one id");
    assert!(is_uuid_7(&text["id"]) && is_uuid_7(&reasoning["id"]) && text["id"] != reasoning["id"]);
    let expected = json!({
        "type": "usage", "runId": model, "agentId": agent, "parentId": run, "inputTokens": 120,
        "outputTokens": 18, "cacheReadTokens": 64, "cacheCreationTokens": 0,
    });
    assert_eq!(*usage, expected);

    let id = format!("{}/call_1", run.as_str().unwrap());
    let expected = json!({
        "type": "tool_call", "runId": run, "id": id, "agentId": agent, "name": "bash",
        "input": {"command": "ls -la"},
    });
    assert_eq!(*tool_call, expected);
    let expected = json!({
        "type": "tool_progress", "runId": run, "id": progress["id"], "agentId": agent, "toolCallId": id,
        "name": "bash", "content": {"channel": "stdout", "data": "a.txt\n"},
    });
    assert_eq!(*progress, expected);
    let expected = json!({
        "type": "tool_result", "runId": run, "id": id, "agentId": agent, "name": "bash",
        "output": {
            "context": "stdout:\na.txt\n\nexit code: 0", "result": {"exitCode": 0, "stdout": "a.txt\n", "stderr": ""},
        },
    });
    assert_eq!(*result, expected);

    assert!(answer["runId"] != *model && answer["id"] != text["id"], "another call says another text");
    assert_eq!((&answer["content"], &last["type"]), (&json!("Done."), &json!("usage")));
    let expected = json!({
        "type": "harness_end", "runId": run, "agentId": agent, "reason": "final", "iterations": 2,
        "totalUsage": {"inputTokens": 120, "outputTokens": 18},
    });
    assert_eq!(*end, expected);
}

#[tokio::test]
async fn results_of_tools_have_the_form_of_what_became_of_them() {
    let mut kinds = vec![started(Vec::new()), called(1), counted()];
    let calls = [
        (bash("c1", "false"), Gate::Open, ran(1, "")),
        (bash("c2", "sleep 9"), Gate::Open, ToolResult { return_code: None, ..ran(1, "") }),
        (bash("c3", "rm x"), Gate::Open, ToolResult::error("refused: no")),
        (call("c4", "nosuch", "{not json"), Gate::Open, ToolResult::error("Failed to find tool nosuch")),
        (call("c5", "list", "{}"), Gate::Open, ToolResult::success("[1]")),
        (call("c6", "note", "{}"), Gate::Open, ToolResult::success("noted")),
        (bash("c7", "id"), Gate::Forbidden, ToolResult::error("not now")),
    ];
    kinds.extend(calls.iter().map(|(call, gate, _)| starts(call.clone(), *gate)));
    kinds.extend(calls.iter().map(|(call, _, result)| ends(call.id.as_str(), result.clone())));
    kinds.push(finished(""));
    let events = play(kinds).await;
    let outputs: Vec<_> =
        events.iter().filter(|event| event["type"] == "tool_result").map(|event| &event["output"]).collect();
    let shell = |code: i32| json!({"context": "exit code 1", "result": {"exitCode": code, "stdout": "", "stderr": ""}});
    let expected = [
        shell(1),
        shell(-1),
        json!({"error": "refused: no"}),
        json!({"error": "Failed to find tool nosuch"}),
        json!({"context": "[1]", "result": [1]}),
        json!({"context": "noted"}),
        json!({"status": "denied", "reason": "not now"}),
    ];
    assert_eq!(outputs, expected.iter().collect::<Vec<_>>());
    let inputs: Vec<_> =
        events.iter().filter(|event| event["type"] == "tool_call").map(|event| &event["input"]).collect();
    assert_eq!(inputs.len(), 6, "what is forbidden is not called");
    assert_eq!(inputs[3], "{not json");
}

#[tokio::test]
async fn a_call_that_waits_is_a_relay_first_and_a_call_once_it_is_allowed() {
    let kinds = vec![
        started(Vec::new()),
        called(1),
        counted(),
        starts(bash("c1", "mkdir x"), Gate::Waits),
        starts(bash("c2", "rm y"), Gate::Waits),
        asked("c1"),
        asked("c2"),
        allowed("c1"),
        ends("c2", ToolResult::error("not now")),
        ends("c1", ran(0, "")),
        finished(""),
    ];
    let events = play(kinds).await;
    let expected = [
        "connected",
        "harness_start",
        "usage",
        "relay",
        "relay",
        "tool_call",
        "tool_result",
        "tool_result",
        "harness_end",
    ];
    assert_eq!(names(&events), expected);
    let (run, agent) = (events[1]["runId"].as_str().unwrap(), &events[1]["agentId"]);
    let relay = &events[3];
    let expected = json!({
        "type": "relay", "kind": "permission", "runId": run, "id": relay["id"], "agentId": agent,
        "toolCallId": format!("{run}/c1"), "tool": "bash", "params": {"command": "mkdir x"},
    });
    assert_eq!(*relay, expected);
    assert!(relay["id"].as_str().unwrap().bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)));
    assert_ne!(relay["id"], events[4]["id"]);
    assert_eq!(events[5]["id"], relay["toolCallId"]);
    assert_eq!(events[6]["output"], json!({"status": "denied", "reason": "not now"}));
    assert_eq!(events[7]["id"], relay["toolCallId"]);
}

#[tokio::test]
async fn a_subagent_has_ids_of_its_own_and_its_call_as_parent() {
    let EventKind::RunStarted(main) = started(Vec::new()) else { panic!() };
    let sub = EventKind::RunStarted(RunStarted { call: Some(CallId::new("c1")), ..main.clone() });
    let below = EventKind::RunStarted(RunStarted { call: Some(CallId::new("c1_a1")), ..main });
    let task = |id: &str| call(id, "agent", r#"{"task":"look"}"#);
    let at = |agent: &str, parent: Option<&str>, kind| {
        let parent = parent.map(AgentId::new);
        Told { agent: AgentId::new(agent), parent, kind }
    };
    let kinds = vec![
        at("main", None, started(Vec::new())),
        at("main", None, called(1)),
        at("main", None, counted()),
        at("main", None, starts(task("c1"), Gate::Open)),
        at("a1", Some("main"), sub),
        at("a1", Some("main"), called(1)),
        at("a1", Some("main"), said(1, "hi")),
        at("a1", Some("main"), counted()),
        at("a1", Some("main"), starts(task("c1_a1"), Gate::Open)),
        at("a2", Some("a1"), below),
        at(
            "a2",
            Some("a1"),
            EventKind::RunFailed { code: FailureCode::Internal, message: "broke".to_owned() },
        ),
        at("a1", Some("main"), ends("c1_a1", ToolResult::error("The agent failed: broke"))),
        at("a1", Some("main"), finished("hi")),
        at("main", None, ends("c1", ToolResult::success("hi"))),
        at("main", None, finished("")),
    ];
    let world = World::new(config(), Act::Tell(kinds)).await;
    let events: Vec<_> = events(ask(&world, &json!({}))).await.into_iter().map(|(_, data)| data).collect();
    let expected = [
        "connected",
        "harness_start",
        "usage",
        "tool_call",
        "harness_start",
        "text",
        "usage",
        "tool_call",
        "harness_start",
        "error",
        "harness_end",
        "tool_result",
        "harness_end",
        "tool_result",
        "harness_end",
    ];
    assert_eq!(names(&events), expected);
    let (main, first, second) = (&events[1], &events[4], &events[8]);
    assert!(main.get("parentId").is_none() && main.get("depth").is_none());
    assert_eq!((&first["parentId"], &first["depth"]), (&events[3]["id"], &json!(1)));
    assert_eq!((&second["parentId"], &second["depth"]), (&events[7]["id"], &json!(2)));
    assert!(main["agentId"] != first["agentId"] && main["runId"] != first["runId"]);
    assert_eq!((&events[5]["parentId"], &events[5]["agentId"]), (&first["runId"], &first["agentId"]));
    assert_eq!(events[7]["parentId"], first["parentId"]);
    let expected = json!({
        "type": "error", "runId": second["runId"], "agentId": second["agentId"], "parentId": second["parentId"],
        "message": "broke",
    });
    assert_eq!(events[9], expected);
    assert!(events[10]["agentId"] == second["agentId"] && events[10].get("reason").is_none());
    assert_eq!(events[13]["output"], json!({"context": "hi"}));
}

#[tokio::test]
async fn a_run_that_fails_ends_with_its_error_and_its_end() {
    let failed = EventKind::RunFailed {
        code: FailureCode::RateLimited { retry_after: None },
        message: "slow down".to_owned(),
    };
    let cancelled = EventKind::RunCancelled { reason: "enough".to_owned() };
    for (end, message) in [(failed, "slow down"), (cancelled, "The run was cancelled: enough")] {
        let events = play(vec![started(Vec::new()), called(1), end]).await;
        assert_eq!(names(&events), ["connected", "harness_start", "error", "harness_end"]);
        assert_eq!(events[2]["message"], message);
        assert_eq!((&events[2]["runId"], &events[3]["runId"]), (&events[1]["runId"], &events[1]["runId"]));
        assert!(events[3].get("reason").is_none());
    }
}

#[tokio::test]
async fn a_run_that_met_a_ceiling_says_so_and_gives_the_answer_that_no_model_gave() {
    let end =
        EventKind::RunFinished { answer: "Nothing to say.".to_owned(), reason: "step_limit".to_owned() };
    let events = play(vec![started(Vec::new()), called(1), counted(), end]).await;
    assert_eq!(names(&events), ["connected", "harness_start", "usage", "text", "harness_end"]);
    assert_eq!(events[3]["content"], "Nothing to say.");
    assert_eq!(events[4]["reason"], "max_iterations");
}

#[tokio::test]
async fn a_stream_goes_on_where_it_broke() {
    let kinds = vec![started(Vec::new()), called(1), said(1, "a"), counted(), finished("a")];
    let world = World::new(config(), Act::Play(kinds)).await;
    let text = async |id: Option<&str>| {
        let mut request = ask(&world, &json!({}));
        if let Some(id) = id {
            request = request.header("last-event-id", id);
        }
        request.send().await.unwrap().text().await.unwrap()
    };
    let whole = text(None).await;
    let ids: Vec<_> = whole.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert_eq!(ids, ["run-1:0", "run-1:1", "run-1:3", "run-1:4", "run-1:5"]);
    for (at, id) in ids.iter().enumerate().skip(1) {
        let rest = whole.split_inclusive("\n\n").skip(at + 1).collect::<String>();
        assert_eq!(text(Some(id)).await, rest, "{id}");
    }
}

#[tokio::test]
async fn what_a_request_says_reaches_the_agent() {
    let world = World::new(config(), Act::Play(vec![started(Vec::new()), finished("x")])).await;
    let image = json!({"type": "image", "mediaType": "image/png", "data": "AAAA"});
    let document = json!({"type": "document", "mediaType": "text/plain", "data": "aGVsbG8="});
    let pdf = json!({"type": "document", "mediaType": "application/pdf", "data": "JVBE"});
    let body = json!({
        "model": "second",
        "context": "Be brief.",
        "mode": "something else",
        "maxIterations": 7.5,
        "tools": [1],
        "messages": [
            {"role": "system", "content": "You are Ada's."},
            {"role": "user", "content": [{"type": "text", "text": "look"}, image]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "R1/call_1", "name": "bash", "arguments": {"command": "ls"}},
                {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": "{\"filePath\": \"/x\"}"}},
                {"id": "R1/call_3", "name": "bash", "arguments": {}},
            ]},
            {"role": "tool", "tool_call_id": "R1/call_1", "content": "a.txt"},
            {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "x"}]},
            {"role": "user", "content": [{"type": "text", "text": "and?"}, image, document, pdf]},
        ],
        "permissions": {
            "allowlist": [{"tool": "bash", "params": {"command": "ls *"}}, "read"],
            "allowOnce": [{"tool": "bash", "params": {"timeout": 5}}],
            "deny": [{"toolCallId": "R1/call_3", "reason": "no"}, {"tool": "patch", "params": {}}],
        },
    });
    events(world.post("/chat", &body.to_string())).await;
    let asked = world.agent.question();
    assert_eq!((asked.model.as_str(), asked.additional_system_prompt.as_str()), ("second", "Be brief."));
    assert_eq!(asked.limits.unwrap().steps, 7);
    assert!(asked.waits && asked.approvals && asked.subagents.is_some());
    assert_eq!(asked.question, "and?\n\n<document type=\"text/plain\">\nhello\n</document>\n");
    assert_eq!(asked.images[0].url, "data:image/png;base64,AAAA");
    let documents: Vec<_> =
        asked.documents.iter().map(|pdf| (pdf.media_type.as_str(), pdf.data.as_str())).collect();
    assert_eq!(documents, [("application/pdf", "JVBE")]);
    let history: Vec<domain::Message> =
        asked.history.into_iter().map(|message| message.try_into().unwrap()).collect();
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Tool];
    assert_eq!(history.iter().map(|message| message.role).collect::<Vec<_>>(), roles);
    let calls: Vec<_> =
        history[2].tool_calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
    let expected = [("call_1", r#"{"command":"ls"}"#), ("call_2", r#"{"filePath":"/x"}"#), ("call_3", "{}")];
    assert_eq!(calls, expected);
    assert_eq!(history[3].answers, Some((CallId::new("call_1"), "bash".to_owned())));
    let [denied] = &asked.decisions[..] else { panic!("{:?}", asked.decisions) };
    assert_eq!(denied.call_id, "call_3");

    let permissions: domain::Permissions = asked.permissions.unwrap().into();
    assert_eq!(permissions.allow[1].parameters.len(), 0);
    assert_eq!(permissions.allow_once[0].parameters["timeout"], "5");
    assert_eq!((permissions.deny.len(), permissions.reads), (2, false));
    assert_eq!(asked.standing_grants.len(), 3, "each rule that allows is signed for executors");
    assert!(!asked.session.is_empty());
}

#[tokio::test]
async fn without_permissions_only_reads_run_unasked_and_without_a_key_nobody_is_asked() {
    let plain = || Act::Play(vec![started(Vec::new()), finished("x")]);
    let world = World::new(config(), plain()).await;
    events(ask(&world, &json!({}))).await;
    let permissions = world.agent.question().permissions.unwrap();
    assert!(permissions.reads && permissions.allow.is_empty());
    let world = World::new(config(), plain()).await;
    events(ask(&world, &json!({"permissions": {}}))).await;
    assert!(!world.agent.question().permissions.unwrap().reads);

    let world = World::new(Config::default(), plain()).await;
    events(ask(&world, &json!({"permissions": {"allowlist": ["bash"]}}))).await;
    let asked = world.agent.question();
    assert!(!asked.approvals && asked.standing_grants.is_empty());
}

#[tokio::test]
async fn what_cannot_be_a_request_is_400_with_its_reason() {
    let world = World::new(config(), Act::Play(Vec::new())).await;
    let user = |content: Value| json!({"messages": [{"role": "user", "content": content}]}).to_string();
    let document = |kind: &str, data: &str| {
        user(json!([{"type": "document", "mediaType": kind, "data": data}, {"type": "text", "text": "x"}]))
    };
    for (body, error) in [
        ("{", "Invalid JSON body"),
        ("", "Invalid JSON body"),
        ("[]", "model and messages are required"),
        ("{}", "model and messages are required"),
        (r#"{"messages": null}"#, "model and messages are required"),
        (r#"{"messages": "x"}"#, "messages"),
        (r#"{"messages": [{"role": "user", "content": 1}]}"#, "messages[0]: "),
        (r#"{"messages": [{"role": "king", "content": "x"}]}"#, "messages[0]: "),
        (r#"{"messages": [{"role": "tool", "content": "x"}]}"#, "messages[0]: a tool's message needs"),
        (r#"{"messages": [{"role": "tool", "tool_call_id": "x", "content": "x"}]}"#, "messages[0]: no call"),
        (&document("application/msword", "AAAA"), "messages[0]: documents of the type `application/msword`"),
        (&document("application/pdf", "?"), "messages[0]: the document's data is not base64"),
        (&document("text/plain", "?"), "messages[0]: the document's data is not base64"),
        (
            &user(json!([{"type": "image", "mediaType": "image/bmp", "data": "AAAA"}])),
            "messages[0]: images of the type",
        ),
        (r#"{"messages": [], "permissions": {"allowlist": [1]}}"#, "permissions"),
        (
            r#"{"messages": [], "permissions": {"deny": [{"tool": "bash", "params": {"command": "@(rm|dd) *"}}]}}"#,
            "permissions: deny: the pattern for `command`",
        ),
        (r#"{"messages": [], "maxIterations": 0}"#, "maxIterations"),
    ] {
        let (status, answer) = reply(world.post("/chat", body)).await;
        assert_eq!(status, 400, "{body}: {answer}");
        let text = answer["error"].as_str().unwrap_or_default();
        assert!(text.contains(error), "{body}: {answer}");
    }
    let refused = Act::Refuse(tonic::Status::invalid_argument("there is no model `x`"));
    let world = World::new(config(), refused).await;
    let (status, answer) = reply(ask(&world, &json!({"model": "x"}))).await;
    assert_eq!((status, answer), (400, json!({"error": "there is no model `x`"})));
}

#[tokio::test]
async fn work_by_code_is_told_and_its_answer_said() {
    let code = call("c1", "repl", r#"{"code":"FINAL(1)"}"#);
    let (text, stream) = ("7\n".to_owned(), OutputStream::Stdout);
    let output = domain::CodeOutput {
        stdout: "7".to_owned(),
        answer: Some("seven".to_owned()),
        elapsed: Some(std::time::Duration::from_millis(12)),
        ..domain::CodeOutput::default()
    };
    let kinds = vec![
        started(Vec::new()),
        called(1),
        said(1, "I compute."),
        counted(),
        EventKind::ReplInput { call: code.clone(), iteration: 1 },
        EventKind::ReplProgress { call: code.id.clone(), stream, text },
        EventKind::ReplOutput { call: code.id, output },
        finished("seven"),
    ];
    let world = World::new(config(), Act::Play(kinds)).await;
    let body = json!({"mode": "rlm", "context": "long", "maxIterations": 3, "maxDepth": 1});
    let events: Vec<_> = events(ask(&world, &body)).await.into_iter().map(|(_, data)| data).collect();
    let asked = world.agent.question();
    let rlm = asked.rlm.unwrap();
    assert_eq!((rlm.context.as_str(), rlm.max_iterations, rlm.max_depth), ("long", 3, Some(1)));
    assert!(asked.limits.is_none() && asked.additional_system_prompt.is_empty());

    let (run, agent, id) = (&events[1]["runId"], &events[1]["agentId"], &events[4]["id"]);
    let of = |more: Value| {
        let mut event = json!({"runId": run, "agentId": agent});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let input = json!({"type": "repl_input", "id": id, "code": "FINAL(1)", "iteration": 0});
    assert_eq!(events[4], of(input));
    let progress =
        json!({"type": "repl_progress", "id": events[5]["id"], "chunk": "7\n", "stream": "stdout"});
    assert_eq!(events[5], of(progress));
    let output = json!({
        "type": "repl_output", "id": id, "stdout": "7", "done": true, "iteration": 0, "durationMs": 12,
        "truncated": false,
    });
    assert_eq!(events[6], of(output));
    assert_eq!((&events[7]["type"], &events[7]["content"]), (&json!("text"), &json!("seven")));
    assert_eq!(events[8]["type"], "harness_end");
}

#[tokio::test]
async fn an_agent_that_code_asks_has_that_code_as_its_parent() {
    let EventKind::RunStarted(main) = started(Vec::new()) else { panic!() };
    let rlm = |depth| Some(domain::Rlm { depth, max_depth: 2, iterations: 7, calls: 9 });
    let main = RunStarted { rlm: rlm(0), ..main };
    let code = call("c1", "repl", r#"{"code":"await llm_query('?')"}"#);
    let below = RunStarted { rlm: rlm(1), call: Some(code.id.clone()), ..main.clone() };
    let at = |agent: &str, parent: Option<&str>, kind| {
        let parent = parent.map(AgentId::new);
        Told { agent: AgentId::new(agent), parent, kind }
    };
    let kinds = vec![
        at("main", None, EventKind::RunStarted(main)),
        at("main", None, called(1)),
        at("main", None, EventKind::ReplInput { call: code.clone(), iteration: 1 }),
        at("a1", Some("main"), EventKind::RunStarted(below)),
        at("a1", Some("main"), finished("four")),
        at("main", None, EventKind::ReplOutput { call: code.id, output: domain::CodeOutput::default() }),
        at("main", None, finished("")),
    ];
    let world = World::new(config(), Act::Tell(kinds)).await;
    let asking = ask(&world, &json!({"mode": "rlm"}));
    let events: Vec<_> = events(asking).await.into_iter().map(|(_, data)| data).collect();
    let (main, code, below) = (&events[1], &events[2], &events[3]);
    assert_eq!((&code["type"], &below["type"]), (&json!("repl_input"), &json!("harness_start")));
    assert_eq!((&below["parentId"], &below["depth"]), (&code["id"], &json!(1)));
    assert!(main["agentId"] != below["agentId"] && main["runId"] != below["runId"]);
    assert!(
        [main, below].iter().all(|start| start["maxIterations"] == 7),
        "the step for an answer is no iteration"
    );
}

#[tokio::test]
async fn models_are_listed_with_the_default_one() {
    let world = World::new(config(), Act::Play(Vec::new())).await;
    let (status, answer) = reply(world.get("/models")).await;
    assert_eq!((status, answer), (200, json!({"models": ["first", "second"], "defaultModel": "second"})));
}
