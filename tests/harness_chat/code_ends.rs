//! Work by code that does not come to its end by itself.

use serde_json::json;

use crate::{
    bench::{Bench, Chat, SOON, asking},
    code::{coding, rlm, said},
};

/// Code that waits for a model which never answers.
const STUCK: &str = "scope.kept = 1; console.log('on'); await llm_query('FAKE' + '_LLM{\"hang\": true}')";

#[tokio::test]
async fn time_is_a_ceiling_of_code_and_of_what_it_asks() {
    let bench = Bench::with(|start, _| start.arg("--max-seconds").arg("2")).await;
    let body = asking(&coding(&[STUCK, STUCK]), rlm(json!({"maxDepth": 1})));
    let mut chat = Chat::open(&bench.url(), &body).await;
    chat.end().await;
    assert_eq!(said(&chat), "I do not know.");
    assert_eq!(chat.all("harness_end")[0]["reason"], "max_iterations");
    assert!(bench.openai.until_idle(SOON).await, "a model is asked");
}

#[tokio::test]
async fn an_interpreter_that_is_lost_says_so_and_then_code_begins_anew() {
    let bench = Bench::start().await;
    let script = coding(&[STUCK, "'nothing'", "FINAL(`${scope.kept}: ${context}`)"]);
    let mut chat = Chat::open(&bench.url(), &asking(&script, rlm(json!({"maxDepth": 1})))).await;
    chat.until("repl_progress").await.unwrap();
    bench.sleuth.lose_executor().await.unwrap();
    chat.end().await;
    let outputs = chat.all("repl_output");
    let why = outputs[0]["error"].as_str().unwrap();
    // Which of the two it is depends on whether another executor is there already.
    let said_so = ["The executor was lost while the tool ran", "files of this session were"];
    assert!(said_so.iter().any(|text| why.contains(text)), "{why}");
    assert_eq!((outputs.len(), &outputs[2]["done"]), (3, &json!(true)));
    assert_eq!(said(&chat), "undefined: a long text");
}
