//! Relays of the harness dialect: what a person's decision is worth, and what is no decision.

use domain::{Approval, CallId, EventKind, Gate, ToolEffect};
use serde_json::{Value, json};
use wire::{agent::decide_request::Settlement, executor::grant::Scope};

use crate::{
    agent::{Act, Stage},
    conversation::{call, started},
    harness::{ask, config},
    world::{World, json as reply},
};

/// A run that waits for decisions about these calls.
async fn world(calls: &[&str]) -> World {
    world_with(calls, &["mkdir"]).await
}

/// The same where the executor offers these beginnings.
async fn world_with(calls: &[&str], prefixes: &[&str]) -> World {
    let mut kinds = vec![started(Vec::new())];
    for id in calls {
        let approval = Approval {
            reason: "it changes something".to_owned(),
            command: "mkdir x".to_owned(),
            target: "host".to_owned(),
            effect: ToolEffect::Mutation,
            prefixes: prefixes.iter().map(|prefix| (*prefix).to_owned()).collect(),
            policy: "p1".to_owned(),
        };
        let call = call(id, "bash", r#"{"command":"mkdir x"}"#);
        kinds.push(EventKind::ToolStarted {
            call,
            description: String::new(),
            toolset: None,
            cluster: None,
            gate: Gate::Waits,
            by: None,
        });
        kinds.push(EventKind::ApprovalRequested { call: CallId::new(*id), approval });
    }
    let agent = Stage { goes_on: true, ..Stage::new(Act::Hang(kinds)) };
    World::with(config(), agent).await
}

/// The ids of the relays of a run, while its stream stays open.
async fn relays(world: &World, count: usize) -> (reqwest::Response, Vec<String>) {
    let mut stream = ask(world, &json!({})).send().await.unwrap();
    let mut text = String::new();
    while text.matches("event: relay").count() < count || !text.ends_with("\n\n") {
        text.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
    }
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = events.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let relays = events.filter(|event| event["type"] == "relay");
    (stream, relays.map(|relay| relay["id"].as_str().unwrap().to_owned()).collect())
}

async fn answer(world: &World, relay: &str, body: Value) -> (u16, Value) {
    reply(world.post(&format!("/chat/relay/{relay}"), &body.to_string())).await
}

fn approve() -> Value {
    json!({"sessionId": "run-1", "response": {"approved": true}})
}

fn done() -> (u16, Value) {
    (200, json!({"success": true}))
}

fn unknown() -> (u16, Value) {
    (404, json!({"error": "Relay not found"}))
}

#[tokio::test]
async fn an_approval_is_a_permission_for_exactly_its_call() {
    let world = world(&["c1"]).await;
    let (_stream, relays) = relays(&world, 1).await;
    assert_eq!(answer(&world, &relays[0], approve()).await, done());
    let decided = world.agent.decided.lock().unwrap().clone();
    let [word] = &decided[..] else { panic!("{decided:?}") };
    assert_eq!((word.run_id.as_str(), word.call_id.as_str(), word.always), ("run-1", "c1", false));
    assert!(word.standing_grants.is_empty());
    let Some(Settlement::Grant(grant)) = &word.settlement else { panic!("{word:?}") };
    let keys = [config().signing_key.unwrap().public()].into_iter().collect();
    let now = runtime::clock::unix_nanos() / 1_000_000_000;
    let Some(Scope::Exact(exact)) = grants::verify(&keys, grant, now).unwrap().scope else { panic!() };
    assert_eq!((exact.execution_id.as_str(), exact.policy_version.as_str()), ("run-1/c1", "p1"));
    assert_eq!(exact.arguments_sha256, grants::sha256(r#"{"command":"mkdir x"}"#));
}

#[tokio::test]
async fn always_is_a_permission_for_later_calls_too() {
    let world = world(&["c1"]).await;
    let (_stream, relays) = relays(&world, 1).await;
    let always = json!({"sessionId": "run-1", "response": {"approved": true, "always": true}});
    assert_eq!(answer(&world, &relays[0], always).await, done());
    let decided = world.agent.decided.lock().unwrap().clone();
    let [standing] = &decided[0].standing_grants[..] else { panic!("{decided:?}") };
    let keys = [config().signing_key.unwrap().public()].into_iter().collect();
    let now = runtime::clock::unix_nanos() / 1_000_000_000;
    let Some(Scope::Standing(scope)) = grants::verify(&keys, standing, now).unwrap().scope else { panic!() };
    assert_eq!((scope.prefixes, decided[0].always), (vec!["mkdir".to_owned()], true));
}

#[tokio::test]
async fn always_is_the_derived_rule_where_an_executor_offers_no_beginnings() {
    let world = world_with(&["c1"], &[]).await;
    let (_stream, relays) = relays(&world, 1).await;
    let always = json!({"sessionId": "run-1", "response": {"approved": true, "always": true}});
    assert_eq!(answer(&world, &relays[0], always).await, done());
    let decided = world.agent.decided.lock().unwrap().clone();
    let keys = [config().signing_key.unwrap().public()].into_iter().collect();
    let now = runtime::clock::unix_nanos() / 1_000_000_000;
    let grant = grants::verify(&keys, &decided[0].standing_grants[0], now).unwrap();
    let Some(Scope::Standing(scope)) = grant.scope else { panic!() };
    assert_eq!((scope.tool.as_str(), scope.prefixes.len()), ("bash", 0));
    assert_eq!(scope.rules[0].patterns["command"], "mkdir **");
}

#[tokio::test]
async fn a_denial_tells_the_model_why_and_allows_nothing() {
    let world = world(&["c1", "c2"]).await;
    let (_stream, relays) = relays(&world, 2).await;
    let deny = |response: Value| json!({"sessionId": "run-1", "response": response});
    let why = deny(json!({"approved": false, "always": true, "reason": "use /data"}));
    assert_eq!(answer(&world, &relays[1], why).await, done());
    assert_eq!(answer(&world, &relays[0], deny(json!({"approved": false}))).await, done());
    let decided = world.agent.decided.lock().unwrap().clone();
    let said: Vec<_> = decided.iter().map(|word| (word.call_id.as_str(), word.settlement.clone())).collect();
    let denial = |text: &str| Some(Settlement::Denial(text.to_owned()));
    let expected = [("c2", denial("use /data")), ("c1", denial("Not run: the user refused this call."))];
    assert_eq!(said, expected);
    assert!(decided.iter().all(|word| word.standing_grants.is_empty() && !word.always));
}

#[tokio::test]
async fn only_the_first_answer_counts() {
    let world = world(&["c1", "ended"]).await;
    let (_stream, relays) = relays(&world, 2).await;
    assert_eq!(answer(&world, &relays[0], approve()).await, done());
    assert_eq!(answer(&world, &relays[0], approve()).await, unknown());
    assert_eq!(answer(&world, &relays[1], approve()).await, unknown(), "it does not wait any more");
}

#[tokio::test]
async fn what_is_no_relay_of_the_session_is_404() {
    let world = world(&["c1"]).await;
    let (_stream, relays) = relays(&world, 1).await;
    for forged in ["x", "e30.AAAA", &relays[0].replacen('e', "f", 1), &format!("{}A", relays[0]), "%FF"] {
        assert_eq!(answer(&world, forged, approve()).await, unknown(), "{forged}");
    }
    let other = json!({"sessionId": "run-2", "response": {"approved": true}});
    let ended = (404, json!({"error": "Session not found"}));
    assert_eq!(answer(&world, &relays[0], other).await, ended);
    let after = Stage { goes_on: false, ..world.agent.clone() };
    let after = World::with(config(), after).await;
    assert_eq!(answer(&after, &relays[0], approve()).await, ended);
    assert!(world.agent.decided.lock().unwrap().is_empty());

    let keyless = Stage { goes_on: true, ..Stage::new(Act::Play(Vec::new())) };
    let keyless = World::with(gateway::Config::default(), keyless).await;
    assert_eq!(answer(&keyless, &relays[0], approve()).await, unknown());
}

#[tokio::test]
async fn what_cannot_be_an_answer_is_400() {
    let world = world(&["c1"]).await;
    let (_stream, relays) = relays(&world, 1).await;
    let required = "sessionId and response are required";
    for (body, error) in [
        ("{", "Invalid JSON body"),
        ("{}", required),
        ("[]", required),
        (r#"{"sessionId": "run-1"}"#, required),
        (r#"{"response": {"approved": true}}"#, required),
        (r#"{"sessionId": 1, "response": {"approved": true}}"#, required),
        (r#"{"sessionId": "run-1", "response": null}"#, required),
        (r#"{"sessionId": "run-1", "response": {}}"#, "response.approved"),
        (r#"{"sessionId": "run-1", "response": {"approved": "yes"}}"#, "response.approved"),
    ] {
        let (status, answer) = reply(world.post(&format!("/chat/relay/{}", relays[0]), body)).await;
        assert_eq!(status, 400, "{body}: {answer}");
        assert!(answer["error"].as_str().unwrap().contains(error), "{body}: {answer}");
    }
    assert!(world.agent.decided.lock().unwrap().is_empty());
}
