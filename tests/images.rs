//! Images: given to models that may see them, refused for others, and never fetched.

#![cfg(test)]

use harness::{client, models::ScriptedOpenAi, process::Start};
use serde_json::{Value, json};
use tokio::net::TcpListener;

const INLINE: &str = "data:image/png;base64,AAAA";

#[tokio::test]
async fn images_reach_a_model_that_may_see_them_and_no_other() {
    let model = ScriptedOpenAi::start().await.unwrap();
    let entry = json!({"model": "openai/scripted", "api_key": "none", "base_url": model.url()});
    let mut blind = entry.clone();
    blind["supports_vision"] = json!(false);
    let server =
        Start::serve().models(&format!("seeing: {entry}\nblind: {blind}\n")).unwrap().start().await.unwrap();
    // Where the image would be, if anybody looked.
    let host = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let remote = format!("http://{}/x.png", host.local_addr().unwrap());
    let images = json!([INLINE, {"url": remote, "detail": "high", "format": "image/png"}]);
    let chat = async |body: Value| client::post(&server.url("/api/chat").unwrap(), &body).await.unwrap();

    let (status, answer) = chat(json!({"ask": "see FAKE_LLM{}", "images": images})).await;
    assert_eq!(status, 200, "{answer}");
    let asked = model.requests().pop().unwrap().body;
    let parts = asked["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    assert_eq!(parts[1], json!({"type": "image_url", "image_url": {"url": INLINE}}));
    assert_eq!(parts[2], json!({"type": "image_url", "image_url": {"url": remote, "detail": "high"}}));
    let fetched = tokio::select! {
        biased;
        fetched = host.accept() => fetched.is_ok(),
        () = std::future::ready(()) => false,
    };
    assert!(!fetched, "the image was fetched");

    for blind in ["blind", "builtin/triage"] {
        let first = json!({"ask": "see FAKE_LLM{}", "images": [INLINE], "model": blind});
        let later = json!({"ask": "and now?", "conversation_history": answer["conversation_history"], "model": blind});
        for body in [first, later] {
            let (status, refused) = chat(body.clone()).await;
            assert_eq!(status, 400, "{body}: {refused}");
            let detail = refused["detail"].as_str().unwrap();
            assert!(
                detail.contains(&format!("`{blind}` cannot see images")) && detail.ends_with(": seeing"),
                "{detail}"
            );
        }
    }
    for (image, place) in [
        (json!("data:image/png;base64,A"), json!(["body", "images", 0])),
        (json!("data:image/svg+xml;base64,AAAA"), json!(["body", "images", 0])),
        (json!("ftp://a.example/x.png"), json!(["body", "images", 0])),
        (json!(""), json!(["body", "images", 0])),
        (json!({"url": INLINE, "detail": "sharp"}), json!(["body", "images", 0])),
        (json!({"url": INLINE, "format": "text/plain"}), json!(["body", "images", 0])),
        (json!({"detail": "low"}), json!(["body", "images", 0, "url"])),
    ] {
        let (status, refused) = chat(json!({"ask": "see", "images": [image]})).await;
        assert_eq!((status.as_u16(), &refused["detail"][0]["loc"]), (422, &place), "{image}: {refused}");
    }
}
