//! Who asked what: whoever said it, whose session or run it was said to.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tonic::Request;
use wire::agent::{ChatRequest, SteerRequest, agent_client::AgentClient, event::Kind};

use crate::{
    sessions::{happens, made, say},
    world::World,
};

const SOON: Duration = Duration::from_secs(90);

/// A model that does not answer.
const HANGS: &str = r#"FAKE_LLM{"hang": true}"#;

fn by<T>(key: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    request
}

#[tokio::test]
async fn what_is_said_is_asked_by_whoever_says_it() {
    let world = World::with(&["--max-key-runs", "1"]).await;
    let colleague = world.operator(&["keys", "create", "--account", "acme"]).await;
    let (key, id) = (colleague["secret"].as_str().unwrap(), colleague["id"].as_str().unwrap());
    let session = made(&world).await;
    say(&world, &world.victim, &session, &format!("why {HANGS}")).await;
    assert!(world.openai.until_in_flight(1, SOON).await);
    say(&world, key, &session, "and this?").await;
    let path = format!("/v1/sessions/{session}/cancel");
    let cancelled = world.send(Method::POST, &path, &world.victim, &json!({}), &[]).await;
    assert!(cancelled.status().is_success(), "{cancelled:?}");
    happens(&world, &session, "turn.cancelled").await;
    assert!(world.openai.until_idle(SOON).await);

    let mut agent = AgentClient::connect(world.sleuth.grpc().unwrap()).await.unwrap();
    let question = ChatRequest { question: format!("where {HANGS}"), ..ChatRequest::default() };
    let mut events = agent.chat(by(&world.victim, question)).await.unwrap().into_inner();
    let run_id = events.message().await.unwrap().unwrap().run_id;
    let word = SteerRequest { run_id, text: "there".to_owned(), ..SteerRequest::default() };
    agent.steer(by(key, word)).await.unwrap();
    let heard = async {
        while let Some(event) = events.message().await.unwrap() {
            if matches!(event.kind, Some(Kind::Steered(_))) {
                return;
            }
        }
        panic!("it is not told");
    };
    tokio::time::timeout(SOON, heard).await.unwrap();

    // A run for the colleague is none for whoever made the session, who has one.
    say(&world, key, &session, "what FAKE_LLM{}").await;
    happens(&world, &session, "turn.completed").await;
    say(&world, &world.victim, &session, "who FAKE_LLM{}").await;
    let failed = happens(&world, &session, "turn.failed").await;
    assert_eq!(failed["data"]["error_code"], "dependency_unavailable", "{failed}");

    let asked = |trail: &[Value]| -> Vec<(String, String)> {
        let word = |entry: &Value| {
            let question = entry["question"].as_str().or(entry["what"]["question"].as_str()).unwrap();
            // The agent adds to what begins a run.
            let said = question.split("\n\n").next().unwrap_or_default();
            (entry["principal"].as_str().unwrap().to_owned(), said.to_owned())
        };
        trail.iter().map(word).collect()
    };
    let said = |who: &str, what: &str| (who.to_owned(), what.to_owned());
    let all = asked(&world.audit("acme&kinds=asked").await);
    let expected = [
        said(id, "what FAKE_LLM{}"),
        said(&world.victim_id, &format!("where {HANGS}")),
        said(id, "there"),
        said(&world.victim_id, &format!("why {HANGS}")),
        said(id, "and this?"),
    ];
    assert_eq!(all, expected);
    let flags = ["--account", "acme", "--kind", "asked", "--by", id];
    let theirs = expected.iter().filter(|(who, _)| who == id).cloned().collect::<Vec<_>>();
    assert_eq!(asked(&world.audit_by_command(&flags).await), theirs);
}
