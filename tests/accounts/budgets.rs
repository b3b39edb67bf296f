//! What an account may spend in a day.

use std::time::{Duration, SystemTime};

use reqwest::{Method, Response};
use serde_json::{Value, json};
use tonic::{Code, Request};
use wire::agent::{ChatRequest, agent_client::AgentClient};

use crate::{
    sessions::{happens, made, say},
    world::World,
};

const DAY: u64 = 24 * 3600;

/// A question whose answer costs 1100 tokens.
const COSTLY: &str = r#"what FAKE_LLM{"prompt_tokens": 900, "completion_tokens": 200}"#;

/// Waits until a day is over that is about to end: what is counted would be gone.
async fn early_enough() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let left = DAY - now % DAY;
    if left < 90 {
        tokio::time::sleep(Duration::from_secs(left)).await;
    }
}

async fn ask(world: &World, key: &str) -> Response {
    world.send(Method::POST, "/api/chat", key, &json!({ "ask": COSTLY }), &[]).await
}

async fn spent(world: &World, account: &str) -> Value {
    let accounts = world.operator(&["accounts", "list"]).await;
    let found = accounts.as_array().unwrap().iter().find(|one| one["id"] == account);
    found.unwrap().clone()
}

/// How a turn of a new session of an account fails.
async fn failed_turn(world: &World) -> Value {
    let session = made(world).await;
    say(world, &world.victim, &session, COSTLY).await;
    happens(world, &session, "turn.failed").await["data"].clone()
}

#[tokio::test]
async fn accounts_without_a_budget_have_the_default_one() {
    early_enough().await;
    let world = World::with(&["--default-daily-tokens", "1000"]).await;
    world.operator(&["accounts", "update", "rival", "--daily-tokens", "5000"]).await;
    let rival = &world.intruders[0].key;
    for (key, second) in [(&world.victim, 429), (rival, 200)] {
        assert_eq!(ask(&world, key).await.status(), 200);
        assert_eq!(ask(&world, key).await.status(), second);
    }
}

#[tokio::test]
async fn an_account_that_has_spent_its_budget_is_refused_everywhere_until_it_has_more() {
    early_enough().await;
    let world = World::start().await;
    let set = world.operator(&["accounts", "update", "acme", "--daily-tokens", "1000"]).await;
    assert_eq!((&set[0]["daily_tokens"], &set[0]["tokens_today"]), (&json!(1000), &json!(0)), "{set}");
    assert_eq!(ask(&world, &world.victim).await.status(), 200);

    let asked = json!({ "ask": COSTLY });
    let streamed = json!({ "ask": COSTLY, "stream": true });
    let messages = json!({ "messages": [{ "role": "user", "content": COSTLY }] });
    for (path, body, detail) in [
        ("/api/chat", &asked, "detail"),
        ("/api/chat", &streamed, "detail"),
        ("/api/holmes/acme/chat", &asked, "msg"),
        ("/api/holmes/acme/chat", &streamed, "msg"),
        ("/chat", &messages, "error"),
    ] {
        for key in [&world.victim, &world.limited] {
            let refused = world.send(Method::POST, path, key, body, &[]).await;
            assert_eq!(refused.status(), 429, "{path}");
            let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
            assert!((1..=DAY).contains(&wait), "{path}: {wait}");
            let answer: Value = refused.json().await.unwrap();
            let said = answer[detail].as_str().unwrap_or_else(|| panic!("{path}: {answer}"));
            assert!(said.contains("(1100 of 1000 tokens)"), "{path}: {answer}");
        }
    }
    let mut agent = AgentClient::connect(world.sleuth.grpc().unwrap()).await.unwrap();
    let mut asked = Request::new(ChatRequest { question: COSTLY.to_owned(), ..ChatRequest::default() });
    asked.metadata_mut().insert("authorization", format!("Bearer {}", world.victim).parse().unwrap());
    let refused = agent.chat(asked).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert!(refused.metadata().contains_key("retry-after"), "{refused:?}");
    let failed = failed_turn(&world).await;
    assert_eq!(failed["error_code"], "budget_exhausted", "{failed}");
    let figures = ["spent", "limit", "currency"].map(|name| &failed["error_fields"][name]);
    assert_eq!(figures, [&json!(1100), &json!(1000), &json!("tokens")], "{failed}");

    // It is nobody else's affair, and what is refused costs nothing.
    let rival = &world.intruders[0].key;
    assert_eq!(ask(&world, rival).await.status(), 200);
    for account in ["acme", "rival"] {
        assert_eq!(spent(&world, account).await["tokens_today"], 1100, "{account}");
    }

    let change = async |body: Value| world.admin(Method::PATCH, "/api/admin/accounts/acme", &body).await;
    let (status, account) = change(json!({ "daily_tokens": 3000 })).await;
    assert_eq!(
        (status, &account["daily_tokens"], &account["tokens_today"]),
        (200, &json!(3000), &json!(1100))
    );
    assert_eq!(ask(&world, &world.victim).await.status(), 200);
    let (_, account) = change(json!({ "daily_tokens": 0, "daily_cost_usd": 0.001 })).await;
    assert_eq!((&account["daily_tokens"], &account["daily_cost_usd"]), (&Value::Null, &json!(0.001)));
    let refused = ask(&world, &world.victim).await;
    assert_eq!(refused.status(), 429);
    assert!(refused.text().await.unwrap().contains("US dollars"));
    assert_eq!(change(json!({ "daily_cost_usd": -1 })).await.0, 400);
    assert_eq!(change(json!({ "daily_cost_usd": 0 })).await.0, 200);
    assert_eq!(ask(&world, &world.victim).await.status(), 200);
}

#[tokio::test]
async fn a_run_ends_with_what_is_left_of_the_budget() {
    early_enough().await;
    let world = World::start().await;
    world.operator(&["accounts", "update", "acme", "--daily-tokens", "2500"]).await;
    let endless = r#"look FAKE_LLM{"rounds": 50, "prompt_tokens": 900, "completion_tokens": 100}"#;
    let asked = async || {
        let (body, once) = (json!({ "ask": endless }), [("idempotency-key", "once")]);
        world.send(Method::POST, "/api/chat", &world.victim, &body, &once).await
    };
    let run_id = |answer: &Response| answer.headers()["x-sleuth-run-id"].to_str().unwrap().to_owned();
    let answer = asked().await;
    assert_eq!(answer.status(), 200);
    let first = run_id(&answer);
    // After the third call nothing is left, and the fourth has to answer.
    let calls = world.openai.requests();
    let may_look: Vec<_> = calls.iter().map(|call| call.body["tools"].is_array()).collect();
    assert_eq!(may_look, [true, true, true, false]);
    assert_eq!(spent(&world, "acme").await["tokens_today"], 4000);
    assert_eq!(ask(&world, &world.victim).await.status(), 429);
    // Whoever asks for it again gets that run.
    assert_eq!(run_id(&asked().await), first);
    assert_eq!(world.openai.requests().len(), 4);
}
