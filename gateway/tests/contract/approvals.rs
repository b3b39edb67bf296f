//! Tool approval: what a person is shown, and what a decision is worth when it comes back.

use domain::{Approval, CallId, EventKind, Message, Permission, Role, RunId, ToolEffect};
use gateway::Config;
use grants::SigningKey;
use serde_json::{Value, json};
use wire::{
    agent::{ChatRequest, decision::Decision},
    executor::grant::Scope,
};

use crate::{
    agent::Act,
    conversation::{call, counted, finished, plain, said, started, tool_started},
    world::{World, events, json as reply},
};

const ARGUMENTS: &str = r#"{"suggested_prefixes": ["mkdir", "echo"], "command": "mkdir x && echo y"}"#;

fn key() -> SigningKey {
    "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE".parse().unwrap()
}

fn config() -> Config {
    Config { signing_key: Some(key()), ..Config::default() }
}

/// A run that waits for a person.
fn waiting() -> Vec<EventKind> {
    let waits = call("call_1", "bash", ARGUMENTS);
    let mut asks = Message::text(Role::Assistant, "I will make it.");
    asks.tool_calls = vec![waits.clone()];
    let approval = Approval {
        reason: "`mkdir`: it changes something.".to_owned(),
        command: "mkdir x && echo y".to_owned(),
        target: "prod".to_owned(),
        effect: ToolEffect::Mutation,
        prefixes: vec!["mkdir".to_owned()],
        policy: "p1".to_owned(),
    };
    vec![
        started(vec![Message::text(Role::User, "make it")]),
        counted(1),
        said(asks),
        tool_started(waits.clone(), "mkdir x && echo y", Some("bash")),
        EventKind::ApprovalRequested { call: waits.id, approval },
        counted(1),
        EventKind::RunSuspended,
    ]
}

/// What the client holds while the run waits.
async fn held() -> Value {
    let world = World::new(config(), Act::Play(waiting())).await;
    let body = json!({"ask": "make it", "enable_tool_approval": true});
    let (status, answer) = reply(world.ask(&body.to_string())).await;
    assert_eq!(status, 200, "{answer}");
    assert!(world.agent.question().approvals);
    answer
}

/// What the agent is asked when a client comes back with a body.
async fn asked(config: Config, body: &Value) -> ChatRequest {
    let world = World::new(config, Act::Play(plain())).await;
    let (status, answer) = reply(world.ask(&body.to_string())).await;
    assert_eq!(status, 200, "{answer}");
    world.agent.question()
}

fn denial(asked: &ChatRequest) -> &str {
    match &asked.decisions[..] {
        [wire::agent::Decision { decision: Some(Decision::Denial(why)), .. }] => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_person_sees_the_command_its_target_and_its_effect() {
    let world = World::new(config(), Act::Play(waiting())).await;
    let body = json!({"ask": "make it", "stream": true, "enable_tool_approval": true});
    let events = events(world.ask(&body.to_string())).await;
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "token_count",
        "ai_message",
        "start_tool_calling",
        "tool_calling_result",
        "token_count",
        "approval_required",
    ];
    assert_eq!(names, expected);
    let params = json!({"suggested_prefixes": ["mkdir"], "command": "mkdir x && echo y"});
    let result = &events[3].1["result"];
    assert_eq!((&result["status"], &result["params"]), (&json!("approval_required"), &params));
    assert_eq!(result["error"], "`mkdir`: it changes something.");
    let end = &events[5].1;
    assert_eq!(
        (&end["content"], &end["analysis"], &end["requires_approval"]),
        (&json!(null), &json!(null), &json!(true))
    );
    let pending = json!([{
        "tool_call_id": "call_1", "tool_name": "bash", "description": "mkdir x && echo y", "params": params,
        "command": "mkdir x && echo y", "target": "prod", "effect": "mutation",
        "reason": "`mkdir`: it changes something.", "suggested_prefixes": ["mkdir"],
    }]);
    assert_eq!(end["pending_approvals"], pending);
    assert_eq!(end["pending_frontend_tool_calls"], json!([]));
    let held = end["conversation_history"].as_array().unwrap().last().unwrap();
    let waits = &held["tool_calls"][0];
    assert_eq!(
        (&waits["pending_approval"], &waits["function"]["arguments"]),
        (&json!(true), &json!(ARGUMENTS))
    );
    assert!(waits["approval_token"].as_str().is_some_and(|token| token.len() > 100));
}

#[tokio::test]
async fn the_answer_that_is_not_streamed_waits_too() {
    let answer = held().await;
    assert_eq!((&answer["requires_approval"], &answer["analysis"]), (&json!(true), &json!("")));
    assert_eq!(answer["pending_approvals"][0]["tool_call_id"], "call_1");
}

#[tokio::test]
async fn an_approval_is_a_grant_for_this_very_call() {
    let body = json!({
        "conversation_history": held().await["conversation_history"], "enable_tool_approval": true,
        "tool_decisions": [
            {"tool_call_id": "call_1", "approved": true, "save_prefixes": ["mkdir", "rm"]},
            {"tool_call_id": "unknown", "approved": true},
        ],
    });
    let asked = asked(config(), &body).await;
    let [wire::agent::Decision { run_id, call_id, decision: Some(Decision::Grant(grant)), standing_grants }] =
        &asked.decisions[..]
    else {
        panic!("{:?}", asked.decisions)
    };
    assert_eq!((run_id.as_str(), call_id.as_str()), ("run-1", "call_1"));
    let (keys, now) = ([key().public()].into_iter().collect(), runtime::clock::unix_nanos() / 1_000_000_000);
    let Some(Scope::Exact(exact)) = grants::verify(&keys, grant, now).unwrap().scope else { panic!() };
    assert_eq!((exact.execution_id.as_str(), exact.tool.as_str()), ("run-1/call_1", "bash"));
    assert_eq!((exact.policy_version.as_str(), exact.target.as_str()), ("p1", "prod"));
    assert_eq!(exact.arguments_sha256, grants::sha256(ARGUMENTS));
    let [standing] = &standing_grants[..] else { panic!("{standing_grants:?}") };
    let Some(Scope::Standing(scope)) = grants::verify(&keys, standing, now).unwrap().scope else { panic!() };
    assert_eq!((scope.session.as_str(), scope.prefixes), ("run-1", vec!["mkdir".to_owned()]));
    assert_eq!(asked.session, "run-1");
}

#[tokio::test]
async fn a_refusal_tells_the_model_why() {
    let body = json!({
        "ask": "", "conversation_history": held().await["conversation_history"],
        "tool_decisions": [{"tool_call_id": "call_1", "approved": false, "feedback": "use /data"}],
    });
    assert!(denial(&asked(config(), &body).await).ends_with("The user says: use /data"));
}

#[tokio::test]
async fn what_was_not_shown_cannot_be_approved() {
    type Edit = fn(&mut Value);
    let edits: [(&str, Edit); 7] = [
        ("token is missing", |call| drop(call.as_object_mut().unwrap().remove("approval_token"))),
        ("not made by this server", |call| call["approval_token"] = json!("e30.AAAA")),
        ("not made by this server", |call| {
            let token = call["approval_token"].as_str().unwrap().replacen('e', "f", 1);
            call["approval_token"] = json!(token);
        }),
        ("not the one that was shown", |call| {
            call["function"]["arguments"] = json!("{\"command\":\"rm -rf /\"}");
        }),
        ("not the one that was shown", |call| call["function"]["name"] = json!("kubectl")),
        ("not the one that was shown", |call| {
            call["function"]["arguments"] = json!(ARGUMENTS.replace(": ", ":"));
        }),
        ("not the one that was shown", |call| call["id"] = json!("call_2")),
    ];
    let held = held().await;
    for (why, edit) in edits {
        let mut history = held["conversation_history"].clone();
        let call = &mut history.as_array_mut().unwrap().last_mut().unwrap()["tool_calls"][0];
        edit(call);
        let id = call["id"].clone();
        let decisions = json!([{"tool_call_id": id, "approved": true}]);
        let body = json!({"conversation_history": history, "tool_decisions": decisions});
        let asked = asked(config(), &body).await;
        assert!(denial(&asked).contains(why), "{why}: {}", denial(&asked));
    }
}

#[tokio::test]
async fn another_key_or_none_approves_nothing() {
    let held = held().await;
    let decisions = json!([{"tool_call_id": "call_1", "approved": true}]);
    let body = json!({
        "conversation_history": held["conversation_history"], "tool_decisions": decisions,
        "enable_tool_approval": true,
    });
    let other = Config { signing_key: Some(SigningKey::generate().unwrap()), ..Config::default() };
    assert!(denial(&asked(other, &body).await).contains("not made by this server"));
    let without = asked(Config::default(), &body).await;
    assert!(denial(&without).contains("no key") && !without.approvals);
}

#[tokio::test]
async fn decisions_where_nothing_waits_are_an_error() {
    let world = World::new(config(), Act::Play(plain())).await;
    let mut body =
        json!({"ask": "x", "stream": true, "tool_decisions": [{"tool_call_id": "c", "approved": true}]});
    let events = events(world.ask(&body.to_string())).await;
    let [(name, error)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((name.as_str(), &error["error_code"], &error["success"]), ("error", &json!(1), &json!(false)));
    assert!(error["msg"].as_str().unwrap().starts_with("Received 1 tool decisions"));
    body["stream"] = json!(false);
    assert_eq!(reply(world.ask(&body.to_string())).await.0, 400);
}

#[tokio::test]
async fn wrong_decisions_are_named_by_their_path() {
    let world = World::new(config(), Act::Play(plain())).await;
    for (decision, path) in [
        (json!({"approved": true}), json!(["body", "tool_decisions", 0, "tool_call_id"])),
        (json!({"tool_call_id": "c"}), json!(["body", "tool_decisions", 0, "approved"])),
        (
            json!({"tool_call_id": "c", "approved": "perhaps"}),
            json!(["body", "tool_decisions", 0, "approved"]),
        ),
        (
            json!({"tool_call_id": "c", "approved": true, "save_prefixes": [1]}),
            json!(["body", "tool_decisions", 0, "save_prefixes", 0]),
        ),
        (json!(1), json!(["body", "tool_decisions", 0])),
    ] {
        let body = json!({"ask": "x", "tool_decisions": [decision]});
        let (status, answer) = reply(world.ask(&body.to_string())).await;
        assert_eq!((status, &answer["detail"][0]["loc"]), (422, &path), "{answer}");
    }
}

#[tokio::test]
async fn what_is_allowed_for_later_travels_with_the_history() {
    let standing = {
        let scope = wire::executor::StandingScope {
            session: "run-0".to_owned(),
            tool: "bash".to_owned(),
            prefixes: vec!["mkdir".to_owned()],
            rules: Vec::new(),
            target: String::new(),
            profile: String::new(),
        };
        let now = runtime::clock::unix_nanos() / 1_000_000_000;
        let by = grants::Decider { account: "default", principal: "", now };
        grants::allow(&key(), Scope::Standing(scope), by)
    };
    let waits = call("call_1", "bash", ARGUMENTS);
    let mut asks = Message::text(Role::Assistant, "");
    asks.tool_calls = vec![waits.clone()];
    let permission = Permission {
        run: RunId::new("run-0"),
        grant: vec![1],
        standing: vec![standing.clone()],
        always: false,
    };
    let resumed = vec![
        started(vec![Message::text(Role::User, "make it"), asks]),
        EventKind::CallApproved {
            call: waits,
            description: "mkdir x".to_owned(),
            toolset: Some("bash".to_owned()),
            cluster: None,
            permission,
        },
        EventKind::ToolFinished {
            call: CallId::new("call_1"),
            result: domain::ToolResult::error("no space"),
        },
        counted(1),
        said(Message::text(Role::Assistant, "done")),
        finished("done"),
    ];
    let world = World::new(config(), Act::Play(resumed)).await;
    let (_, answer) = reply(world.ask(r#"{"ask": "x"}"#)).await;
    assert_eq!(answer["tool_calls"][0]["description"], "mkdir x");

    let body = json!({"ask": "more", "conversation_history": answer["conversation_history"]});
    let next = asked(config(), &body).await;
    assert_eq!((next.session.as_str(), &next.standing_grants[..]), ("run-0", &[standing][..]));
    let other = Config { signing_key: Some(SigningKey::generate().unwrap()), ..Config::default() };
    assert!(asked(other, &body).await.standing_grants.is_empty());
}
