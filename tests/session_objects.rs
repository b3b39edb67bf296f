//! What there is beside sessions: agents of an account, images that are sent ahead, subagents as tasks, pages of what
//! a session has had.

#![cfg(test)]

use base64::{Engine as _, engine::general_purpose::STANDARD};
use harness::{
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
    sessions::{Sessions, find, message, names, until},
};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

struct Bench {
    _sleuth: Sleuth,
    openai: ScriptedOpenAi,
    sessions: Sessions,
    _data: TempDir,
}

impl Bench {
    async fn start() -> Self {
        let (openai, data) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
        let list = format!(
            "gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {url}\n\
             other:\n  model: openai/gpt-4.1-mini\n  api_key: sk-test\n  base_url: {url}\n",
            url = openai.url()
        );
        let start = Start::serve().env("SLEUTH_DATA_DIR", data.path()).models(&list).unwrap();
        let sleuth = start.start().await.unwrap();
        Self { sessions: Sessions::of(&sleuth).unwrap(), _sleuth: sleuth, openai, _data: data }
    }

    /// Says a text and waits for the answer.
    async fn answer(&self, session: &str, body: &Value) -> Value {
        let path = format!("/sessions/{session}/messages?wait=true");
        let (status, waited) = self.sessions.post(&path, body).await.unwrap();
        assert_eq!(status, 200, "{waited}");
        waited
    }

    /// The last request that the model got.
    fn asked(&self) -> Value {
        self.openai.requests().last().unwrap().body.clone()
    }
}

fn script(script: &Value) -> String {
    format!("look FAKE_LLM{script}")
}

#[tokio::test]
async fn an_agent_is_what_its_sessions_begin_with() {
    let bench = Bench::start().await;
    let sessions = &bench.sessions;
    let (status, agent) = sessions
        .post(
            "/agents",
            &json!({ "name": "nightwatch", "system_prompt": "Watch at night.", "default_model_id": "other" }),
        )
        .await
        .unwrap();
    assert_eq!((status, &agent["status"]), (201, &json!("active")), "{agent}");
    let id = agent["id"].as_str().unwrap();
    let session = sessions.create(&json!({ "agent_name": "nightwatch" })).await.unwrap();
    let (_, described) = sessions.get(&format!("/sessions/{session}")).await.unwrap();
    assert_eq!(described["agent_id"], id);
    bench.answer(&session, &message("who are you?")).await;
    let asked = bench.asked();
    assert_eq!(asked["model"], "gpt-4.1-mini");
    assert!(asked["messages"][0]["content"].as_str().unwrap().contains("Watch at night."));

    // The next turn follows the change.
    let path = format!("/agents/{id}");
    let change = json!({ "system_prompt": "Watch by day." });
    let (status, changed) = sessions.ask(Method::PATCH, &path, Some(&change)).await.unwrap();
    assert_eq!((status, &changed["name"]), (200, &json!("nightwatch")));
    bench.answer(&session, &message("and now?")).await;
    assert!(bench.asked()["messages"][0]["content"].as_str().unwrap().contains("Watch by day."));

    let (_, listed) = sessions.get("/agents").await.unwrap();
    let names: Vec<_> = listed["data"].as_array().unwrap().iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["sleuth", "nightwatch"]);
    assert_eq!(sessions.ask(Method::DELETE, &path, None).await.unwrap().0, 204);
    assert_eq!(sessions.get(&path).await.unwrap().0, 404);
    assert_eq!(sessions.post("/sessions", &json!({ "agent_id": id })).await.unwrap().0, 404);
    bench.answer(&session, &message("still there?")).await;
    let built_in = listed["data"][0]["id"].as_str().unwrap();
    assert_eq!(sessions.ask(Method::DELETE, &format!("/agents/{built_in}"), None).await.unwrap().0, 403);
    assert_eq!(sessions.post("/agents", &json!({})).await.unwrap().0, 400);
    assert_eq!(sessions.get("/agents/agent_1").await.unwrap().0, 400);
}

#[tokio::test]
async fn an_image_is_sent_ahead_and_seen_by_the_model() {
    let bench = Bench::start().await;
    let picture = b"\x89PNG\r\n\x1a\nnot much of a picture".to_vec();
    let send = async |kind: &str, body: Vec<u8>| {
        let url = bench.sessions.url("/images?filename=graph.png");
        let request = reqwest::Client::new().post(url).header("content-type", kind).body(body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    let (status, image) = send("image/png", picture.clone()).await;
    assert_eq!((status, &image["size_bytes"]), (201, &json!(picture.len())), "{image}");
    assert_eq!(send("image/png", b"<svg/>".to_vec()).await.0, 415);
    assert_eq!(send("image/png", vec![0; (8 << 20) + 1]).await.0, 413);
    let id = image["id"].as_str().unwrap();
    let back = reqwest::get(bench.sessions.url(&format!("/images/{id}"))).await.unwrap();
    assert_eq!(back.headers()["content-type"], "image/png");
    assert_eq!(back.bytes().await.unwrap(), picture);

    let session = bench.sessions.create(&json!({})).await.unwrap();
    let shows = |id: &str| {
        let image = json!({ "type": "image_file", "image_id": id, "filename": "graph.png" });
        json!({ "message": { "content": [{ "type": "text", "text": "what is this?" }, image] } })
    };
    bench.answer(&session, &shows(id)).await;
    let seen = bench.asked()["messages"].as_array().unwrap().last().unwrap()["content"][1].clone();
    let url = format!("data:image/png;base64,{}", STANDARD.encode(&picture));
    assert_eq!(seen["image_url"]["url"], url);
    let path = format!("/sessions/{session}/messages");
    let (_, messages) = bench.sessions.get(&path).await.unwrap();
    assert_eq!(messages["data"][0]["content"][1]["image_id"], id);
    let unknown = format!("img_{}", "0".repeat(32));
    assert_eq!(bench.sessions.post(&path, &shows(&unknown)).await.unwrap().0, 404);
    assert_eq!(bench.sessions.post(&path, &shows("img_1")).await.unwrap().0, 400);
}

#[tokio::test]
async fn subagents_are_tasks_of_their_session() {
    let bench = Bench::start().await;
    let able = json!({ "capabilities": [{ "ref": "subagents" }] });
    let session = bench.sessions.create(&able).await.unwrap();
    let mut stream = bench.sessions.watch(&session, "after_sequence=0").await.unwrap();
    let part = script(&json!({ "answer": "the part is well" }));
    let whole =
        json!({ "steps": [[{ "name": "agent", "args": { "task": part } }]], "answer": "all is well" });
    bench.sessions.say(&session, &script(&whole)).await.unwrap();
    let frames = until(&mut stream, "session.idled").await.unwrap();
    let created = &find(&frames, "task.created").unwrap()["task"];
    assert_eq!((&created["state"], &created["kind"]), (&json!("running"), &json!("subagent")));
    assert_eq!(created["session_id"], session);
    assert!(created["spec"]["task"].as_str().unwrap().starts_with("look"), "{created}");
    let updated = &find(&frames, "task.updated").unwrap()["task"];
    assert_eq!((&updated["state"], &updated["id"]), (&json!("succeeded"), &created["id"]));
    assert_eq!(updated["summary"], "the part is well");
    assert!(updated["finished_at"].is_string());
    let order: Vec<_> = names(&frames);
    let place = |name: &str| order.iter().position(|event| *event == name).unwrap();
    assert!(place("tool.started") < place("task.created") && place("task.updated") < place("tool.completed"));
    // What they took is taken by the turn.
    let calls: u64 = bench.openai.requests().len() as u64;
    assert_eq!(calls, 3);
    let (status, problem) =
        bench.sessions.post("/sessions", &json!({ "capabilities": [{ "ref": "fly" }] })).await.unwrap();
    assert_eq!(status, 400, "{problem}");
}

#[tokio::test]
async fn what_a_session_has_had_comes_in_pages() {
    let bench = Bench::start().await;
    let session = bench.sessions.create(&json!({})).await.unwrap();
    for answer in ["one", "two", "three"] {
        bench.answer(&session, &message(&script(&json!({ "answer": answer })))).await;
    }
    let path = format!("/sessions/{session}");
    let (_, first) = bench.sessions.get(&format!("{path}/messages?limit=4")).await.unwrap();
    assert_eq!(first["has_more"], true);
    let last = first["data"][3]["sequence"].as_u64().unwrap();
    let (_, rest) =
        bench.sessions.get(&format!("{path}/messages?limit=4&after_sequence={last}")).await.unwrap();
    assert_eq!((rest["data"].as_array().unwrap().len(), &rest["has_more"]), (2, &json!(false)));

    let (_, summary) = bench.sessions.get(&format!("{path}/events/summary")).await.unwrap();
    assert_eq!((&summary["turn_count"], &summary["error_count"]), (&json!(3), &json!(0)), "{summary}");
    let response = reqwest::get(bench.sessions.url(&format!("{path}/events?limit=3"))).await.unwrap();
    let total = response.headers()["x-total-count"].to_str().unwrap().to_owned();
    assert_eq!(total, summary["total"].to_string(), "deltas do not count");
    let listed: Value = response.json().await.unwrap();
    let types = |listed: &Value| -> Vec<String> {
        let events = listed["data"].as_array().unwrap().iter();
        events.map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(types(&listed), ["reason.completed", "turn.completed", "session.idled"]);
    assert_eq!(listed["has_more"], true);
    let (_, turned) = bench.sessions.get(&format!("{path}/events?limit=3&order_desc=true")).await.unwrap();
    assert_eq!(types(&turned)[0], "session.idled");

    let idled = format!("{path}/events?types=session.idled&types=turn.completed");
    let (_, ends) = bench.sessions.get(&idled).await.unwrap();
    let middle = ends["data"][3]["sequence"].as_u64().unwrap();
    let around = format!("{idled}&around={middle}&window=4");
    let (_, around) = bench.sessions.get(&around).await.unwrap();
    assert_eq!(around["data"].as_array().unwrap()[..], ends["data"].as_array().unwrap()[1..5]);
    assert_eq!(bench.sessions.get(&format!("{path}/events?around=1&window=501")).await.unwrap().0, 400);
}
