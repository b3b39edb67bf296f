//! What a model that works by code is told of its input, whatever the conversation ends with.

use serde_json::json;

use crate::{
    bench::{Bench, Chat, asking},
    code::{coding, rlm, said},
};

#[tokio::test]
async fn pictures_reach_a_model_that_works_by_code() {
    let bench = Bench::start().await;
    let mut body = asking(&coding(&["FINAL(context.length)"]), rlm(json!({})));
    let text = body["messages"][0]["content"].take();
    let picture = json!({"type": "image", "mediaType": "image/png", "data": "iVBORwA="});
    body["messages"][0]["content"] = json!([{"type": "text", "text": text}, picture]);
    let mut chat = Chat::open(&bench.url(), &body).await;
    chat.end().await;
    assert_eq!(said(&chat), "11");
    let asked = bench.openai.requests()[0].body["messages"].to_string();
    assert!(asked.contains("data:image/png;base64,iVBORwA="), "{asked}");
    assert!(asked.contains("`context` has 11 characters"), "{asked}");
}

#[tokio::test]
async fn it_hears_of_its_input_also_where_the_last_message_is_no_text_of_the_user() {
    let bench = Bench::start().await;
    let script = coding(&["FINAL(context.slice(0, 13))"]);
    for (more, answer) in [(rlm(json!({})), "a long text"), (json!({"mode": "rlm"}), "look FAKE_LLM")] {
        let mut body = asking(&script, more);
        let picture = json!([{"type": "image", "mediaType": "image/png", "data": "iVBORwA="}]);
        body["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": picture}));
        let mut chat = Chat::open(&bench.url(), &body).await;
        chat.end().await;
        assert_eq!(said(&chat), answer);
        let asked = bench.openai.requests().last().unwrap().body["messages"].to_string();
        assert!(asked.contains("`context` has "), "{asked}");
    }
}
