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
    let body = asking(&coding(&[STUCK, STUCK]), rlm(json!({"maxDepth": 0})));
    let mut chat = Chat::open(&bench.url(), &body).await;
    chat.end().await;
    assert_eq!(said(&chat), "I do not know.");
    assert_eq!(chat.all("harness_end")[0]["reason"], "max_iterations");
    assert!(bench.openai.until_idle(SOON).await, "a model is asked");
}

#[tokio::test]
async fn a_command_of_code_that_takes_too_long_is_stopped_and_the_code_goes_on() {
    let bench = Bench::start().await;
    let script =
        coding(&["const it = await exec('tail -f /dev/null', 1); FINAL(`${it.exitCode}: ${it.stderr}`)"]);
    let mut chat = Chat::open(&bench.url(), &asking(&script, rlm(json!({})))).await;
    chat.end().await;
    assert!(said(&chat).starts_with("-1: Error: Command 'tail -f /dev/null'"), "{}", said(&chat));
}

#[tokio::test]
async fn an_interpreter_that_is_lost_says_so_and_then_code_begins_anew() {
    const TELLS: &str = "FINAL(`${scope.kept}: ${context}`)";
    let bench = Bench::start().await;
    // On a busy machine, some code comes before another executor does.
    let script = coding(&[&[STUCK][..], &[TELLS; 9]].concat());
    let mut chat = Chat::open(&bench.url(), &asking(&script, rlm(json!({"maxDepth": 0})))).await;
    chat.until("repl_progress").await.unwrap();
    bench.sleuth.lose_executor().await.unwrap();
    chat.end().await;
    let outputs = chat.all("repl_output");
    let why = outputs[0]["error"].as_str().unwrap();
    assert!(why.contains("lost") || why.contains("could not be run"), "{why}");
    assert_eq!(outputs.last().unwrap()["done"], true);
    assert_eq!(said(&chat), "undefined: a long text");
}
