//! Bodies that are wrong, and what is said of them.

use gateway::Config;
use serde_json::{Value, json};

use crate::{
    agent::Act,
    conversation::plain,
    world::{World, json as reply},
};

/// Body, and of each error: type, place, input.
type Row = (&'static str, Vec<(&'static str, Value, Value)>);

fn rows() -> Vec<Row> {
    vec![
        ("", vec![("missing", json!(["body"]), json!(null))]),
        ("null", vec![("missing", json!(["body"]), json!(null))]),
        ("[1]", vec![("model_attributes_type", json!(["body"]), json!([1]))]),
        ("\"x\"", vec![("model_attributes_type", json!(["body"]), json!("x"))]),
        ("{}", vec![("missing", json!(["body", "ask"]), json!({}))]),
        (r#"{"ask": null}"#, vec![("string_type", json!(["body", "ask"]), json!(null))]),
        (r#"{"ask": 1}"#, vec![("string_type", json!(["body", "ask"]), json!(1))]),
        (r#"{"ask": "x", "model": {}}"#, vec![("string_type", json!(["body", "model"]), json!({}))]),
        (
            r#"{"ask": "x", "additional_system_prompt": []}"#,
            vec![("string_type", json!(["body", "additional_system_prompt"]), json!([]))],
        ),
        (r#"{"ask": "x", "stream": null}"#, vec![("bool_type", json!(["body", "stream"]), json!(null))]),
        (r#"{"ask": "x", "stream": []}"#, vec![("bool_type", json!(["body", "stream"]), json!([]))]),
        (r#"{"ask": "x", "stream": 2}"#, vec![("bool_parsing", json!(["body", "stream"]), json!(2))]),
        (
            r#"{"ask": "x", "stream": "maybe"}"#,
            vec![("bool_parsing", json!(["body", "stream"]), json!("maybe"))],
        ),
        (
            r#"{"ask": "x", "conversation_history": {}}"#,
            vec![("list_type", json!(["body", "conversation_history"]), json!({}))],
        ),
        (
            r#"{"ask": "x", "conversation_history": ["y"]}"#,
            vec![("dict_type", json!(["body", "conversation_history", 0]), json!("y"))],
        ),
        (
            r#"{"ask": "x", "conversation_history": [{"role": "system", "content": ""}, {"role": "judge"}]}"#,
            vec![("value_error", json!(["body", "conversation_history", 1]), json!({"role": "judge"}))],
        ),
        (
            r#"{"ask": "x", "response_format": "json"}"#,
            vec![("dict_type", json!(["body", "response_format"]), json!("json"))],
        ),
        (
            r#"{"ask": "x", "behavior_controls": ["intro"]}"#,
            vec![("dict_type", json!(["body", "behavior_controls"]), json!(["intro"]))],
        ),
        (
            r#"{"ask": "x", "behavior_controls": {"intro": null, "files": "maybe", "anything": 2}}"#,
            vec![
                ("bool_parsing", json!(["body", "behavior_controls", "anything"]), json!(2)),
                ("bool_parsing", json!(["body", "behavior_controls", "files"]), json!("maybe")),
                ("bool_type", json!(["body", "behavior_controls", "intro"]), json!(null)),
            ],
        ),
        (r#"{"ask": "x", "images": "y"}"#, vec![("list_type", json!(["body", "images"]), json!("y"))]),
        (
            r#"{"ask": "x", "images": [1]}"#,
            vec![
                ("string_type", json!(["body", "images", 0, "str"]), json!(1)),
                ("dict_type", json!(["body", "images", 0, "dict[str,any]"]), json!(1)),
            ],
        ),
        (
            r#"{"ask": "x", "images": [{"detail": "low"}]}"#,
            vec![("missing", json!(["body", "images", 0, "url"]), json!({"detail": "low"}))],
        ),
        (
            r#"{"ask": "x", "images": [{"url": "https://a.example", "detail": 1}]}"#,
            vec![("string_type", json!(["body", "images", 0, "detail"]), json!(1))],
        ),
        (
            r#"{"ask": "x", "images": ["file:///etc/passwd"]}"#,
            vec![("value_error", json!(["body", "images", 0]), json!("file:///etc/passwd"))],
        ),
        (
            r#"{"stream": 7, "images": 8}"#,
            vec![
                ("missing", json!(["body", "ask"]), json!({"stream": 7, "images": 8})),
                ("list_type", json!(["body", "images"]), json!(8)),
                ("bool_parsing", json!(["body", "stream"]), json!(7)),
            ],
        ),
    ]
}

#[tokio::test]
async fn every_mistake_is_named_with_its_place() {
    let world = World::new(Config::default(), Act::Play(plain())).await;
    for (body, errors) in rows() {
        let (status, said) = reply(world.ask(body)).await;
        assert_eq!(status, 422, "{body}: {said}");
        let said = said["detail"].as_array().unwrap();
        let said: Vec<_> = said
            .iter()
            .map(|error| (error["type"].as_str().unwrap(), error["loc"].clone(), error["input"].clone()))
            .collect();
        assert_eq!(said, errors, "{body}");
    }
    assert!(world.agent.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn half_a_surrogate_pair_is_no_text() {
    let world = World::new(Config::default(), Act::Play(plain())).await;
    let response = world.ask(r#"{"ask": "\ud83d"}"#).send().await.unwrap();
    assert_eq!(response.status(), 422);
    assert!(response.text().await.unwrap().contains("string_unicode"));
    let key = r#"{"ask": "x", "behavior_controls": {"\ud83d": true}}"#;
    assert_eq!(world.ask(key).send().await.unwrap().status(), 422);
}

#[tokio::test]
async fn a_text_that_is_not_json_is_answered_with_the_place() {
    let world = World::new(Config::default(), Act::Play(plain())).await;
    for (body, place, error) in [
        (r#"{"ask": "#, 8, "Expecting value"),
        ("x", 0, "Expecting value"),
        ("{\n \"é\": x}", 8, "Expecting value"),
        (r#"{"ask" 1}"#, 7, "Expecting ':' delimiter"),
        (r#"{"ask": 1 2}"#, 10, "Expecting ',' delimiter"),
        (r#"{ask: 1}"#, 1, "Expecting property name enclosed in double quotes"),
        (r#"{} x"#, 3, "Extra data"),
    ] {
        let expected = json!({"detail": [{
            "type": "json_invalid",
            "loc": ["body", place],
            "msg": "JSON decode error",
            "input": {},
            "ctx": {"error": error},
        }]});
        assert_eq!(reply(world.ask(body)).await, (422, expected), "{body}");
    }
}

#[tokio::test]
async fn what_the_original_accepts_is_accepted() {
    let world = World::new(Config::default(), Act::Play(plain())).await;
    for body in [
        r#"{"ask": ""}"#,
        r#"{"ask": "x", "nonsense": 1}"#,
        r#"{"ask": "x", "conversation_history": []}"#,
        r#"{"ask": "x", "conversation_history": null, "model": null, "images": null, "response_format": null}"#,
        r#"{"ask": "x", "behavior_controls": null}"#,
        r#"{"ask": "x", "behavior_controls": {"intro": "off", "no_such_section": 1}}"#,
        r#"{"ask": "x", "stream": "no"}"#,
        r#"{"ask": "x", "stream": 0}"#,
        r#"{"ask": "1", "ask": "2"}"#,
    ] {
        assert_eq!(reply(world.ask(body)).await.0, 200, "{body}");
    }
    for (stream, streams) in [("true", true), ("\"ON\"", true), ("1", true), ("false", false)] {
        let response = world.ask(&format!(r#"{{"ask": "x", "stream": {stream}}}"#)).send().await.unwrap();
        assert_eq!(
            response.headers()["content-type"] == "text/event-stream; charset=utf-8",
            streams,
            "{stream}"
        );
    }
}

#[tokio::test]
async fn hostile_bodies_get_small_answers() {
    let world = World::new(Config::default(), Act::Play(plain())).await;
    let mistakes = format!(r#"{{"ask": "x", "images": [{}1]}}"#, "1,".repeat(100_000));
    let (status, body) = reply(world.ask(&mistakes)).await;
    assert_eq!((status, body["detail"].as_array().unwrap().len()), (422, 100));

    let depth = 100_000;
    let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(reply(world.ask(&format!(r#"{{"ask": "x", "unknown": {nested}}}"#))).await.0, 200);
    for field in ["response_format", "conversation_history", "images", "ask"] {
        let body = format!(r#"{{"{field}": {nested}, "ask": "x"}}"#)
            .replace(r#""response_format": ["#, r#""response_format": {"x": ["#);
        let body = if field == "response_format" { body.replace("], \"ask\"", "]}, \"ask\"") } else { body };
        let body = if field == "ask" { format!(r#"{{"ask": {nested}}}"#) } else { body };
        assert_eq!(world.ask(&body).send().await.unwrap().status(), 422, "{field}");
    }
}
