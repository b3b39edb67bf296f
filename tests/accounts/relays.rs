//! Calls of an account that wait for a person in an open stream: nobody else decides about them.

use harness::client::Stream;
use reqwest::Method;
use serde_json::{Value, json};
use tonic::{Code, Request, metadata::MetadataValue};
use wire::agent::{DecideRequest, agent_client::AgentClient, decide_request::Settlement};

use crate::world::World;

/// A run that waits, and its reader.
struct Waiting {
    stream: Stream,
    run: String,
    session: String,
    call: String,
    relay: String,
}

impl Waiting {
    async fn of(world: &World, key: &str) -> Self {
        let script =
            json!({ "steps": [[{ "name": "bash", "args": { "command": "mkdir one" } }]], "answer": "done" });
        let body = json!({ "messages": [{ "role": "user", "content": format!("look FAKE_LLM{script}") }] });
        let answer = world.send(Method::POST, "/chat", key, &body, &[]).await;
        let mut stream = Stream::read(answer).await.unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let connected = until(&mut stream, "connected").await;
        let asked = until(&mut stream, "relay").await;
        Self {
            run: stream.run_id().unwrap(),
            stream,
            session: text(&connected["sessionId"]),
            call: text(&asked["toolCallId"]),
            relay: text(&asked["id"]),
        }
    }
}

/// What the next event of this name says.
async fn until(stream: &mut Stream, name: &str) -> Value {
    let reading = async {
        while let Some(frame) = stream.next().await.unwrap() {
            if frame.event == name {
                return frame.data;
            }
        }
        panic!("there is no {name}")
    };
    tokio::time::timeout(std::time::Duration::from_secs(90), reading).await.expect("an event")
}

/// What becomes of a word about a call.
async fn decide(world: &World, key: &str, session: &str, relay: &str, word: &Value) -> (u16, Value) {
    let body = json!({ "sessionId": session, "response": word });
    let answer = world.send(Method::POST, &format!("/chat/relay/{relay}"), key, &body, &[]).await;
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// The same over gRPC.
async fn decide_over_grpc(world: &World, key: &str, run: &str, call: &str) -> (Code, String) {
    let mut agent = AgentClient::connect(world.sleuth.grpc().unwrap()).await.unwrap();
    let mut word = Request::new(DecideRequest {
        run_id: run.to_owned(),
        call_id: call.to_owned(),
        settlement: Some(Settlement::Denial("no".to_owned())),
        ..DecideRequest::default()
    });
    if !key.is_empty() {
        let bearer: MetadataValue<_> = format!("Bearer {key}").parse().unwrap();
        word.metadata_mut().insert("authorization", bearer);
    }
    let refused = agent.decide(word).await.unwrap_err();
    (refused.code(), refused.message().replace(run, "RUN"))
}

#[tokio::test]
async fn no_key_of_another_account_decides_about_a_call_that_waits() {
    let world = World::start().await;
    let rival = &world.intruders[0];
    let mut theirs = Waiting::of(&world, &world.victim).await;
    let own = Waiting::of(&world, &rival.key).await;
    let nothing = "00000000-0000-7000-8000-000000000000";
    let words = [json!({ "approved": true, "always": true }), json!({ "approved": false, "reason": "no" })];
    let mut attempts = 0;
    for intruder in &world.intruders {
        for word in &words {
            let decide =
                async |session: &str, relay: &str| decide(&world, &intruder.key, session, relay, word).await;
            let seen = decide(&theirs.session, &theirs.relay).await;
            assert!(seen.0 >= 400, "{}: {seen:?}", intruder.name);
            assert_eq!(seen, decide(nothing, &theirs.relay).await, "{}", intruder.name);
            // Neither does it count in a session of one's own.
            let seen = decide(&own.session, &theirs.relay).await;
            assert!(seen.0 >= 400, "{}: {seen:?}", intruder.name);
            assert_eq!(seen, decide(&own.session, nothing).await, "{}", intruder.name);
            attempts += 2;
        }
        let seen = decide_over_grpc(&world, &intruder.key, &theirs.run, &theirs.call).await;
        let unknown = format!("run_{}", nothing.replace('-', ""));
        let other = decide_over_grpc(&world, &intruder.key, &unknown, &theirs.call).await;
        assert_eq!(seen, other, "{}", intruder.name);
        attempts += 1;
    }
    assert!(attempts >= 40, "{attempts}");
    let yes = json!({ "approved": true });
    let counts = (200, json!({ "success": true }));
    assert_eq!(decide(&world, &rival.key, &own.session, &own.relay, &yes).await, counts);
    assert_eq!(decide(&world, &world.victim, &theirs.session, &theirs.relay, &yes).await, counts);
    let result = until(&mut theirs.stream, "tool_result").await;
    assert_eq!(result["output"]["result"]["exitCode"], 0, "{result}");
}
