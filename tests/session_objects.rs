//! What there is beside sessions: agents of an account, images that are sent ahead, subagents as tasks, what a session
//! has had, in pages and by what it is about.

#![cfg(test)]

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::future::join_all;
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
async fn of_changes_at_the_same_time_each_counts() {
    let bench = Bench::start().await;
    let session = bench.sessions.create(&json!({ "title": "before" })).await.unwrap();
    let (_, agent) = bench.sessions.post("/agents", &json!({ "name": "before" })).await.unwrap();
    let paths = [format!("/sessions/{session}"), format!("/agents/{}", agent["id"].as_str().unwrap())];
    for path in &paths {
        for round in 0..5 {
            let prompt = format!("prompt {round}");
            let changes = [
                json!({ "tags": [round.to_string()] }),
                json!({ "system_prompt": prompt }),
                json!({ "max_iterations": round + 1 }),
                json!({ "metadata": { "round": round } }),
            ];
            let change = async |body| bench.sessions.ask(Method::PATCH, path, Some(body)).await.unwrap().0;
            assert_eq!(join_all(changes.iter().map(change)).await, [200; 4]);
            let (_, after) = bench.sessions.get(path).await.unwrap();
            assert_eq!(after["tags"], json!([round.to_string()]), "{after}");
            assert_eq!(
                (&after["system_prompt"], &after["max_iterations"]),
                (&json!(prompt), &json!(round + 1))
            );
            assert_eq!(after["metadata"]["round"], round);
        }
    }
}

#[tokio::test]
async fn a_model_call_tells_of_its_provider() {
    let bench = Bench::start().await;
    let session = bench.sessions.create(&json!({})).await.unwrap();
    let mut stream = bench.sessions.watch(&session, "after_sequence=0").await.unwrap();
    let fails = json!({ "fail_times": 2, "status": 503, "retry_after": 5, "answer": "at last" });
    bench.sessions.say(&session, &script(&fails)).await.unwrap();
    let frames = until(&mut stream, "session.idled").await.unwrap();
    let metadata = &find(&frames, "llm.generation").unwrap()["metadata"];
    assert_eq!(metadata["response_id"], "chatcmpl-scripted", "{metadata}");
    assert_eq!(metadata["retry"]["attempts"], 2, "{metadata}");
    assert!(metadata["retry"]["total_wait_ms"].is_u64(), "{metadata}");
    let (_, models) = bench.sessions.get("/models").await.unwrap();
    let asked = &find(&frames, "reason.started").unwrap()["metadata"];
    let mut models = models["data"].as_array().unwrap().iter();
    let model = models.find(|model| model["id"] == asked["model_id"]).unwrap();
    assert_eq!((&model["provider_name"], &model["provider_type"]), (&json!("openai"), &json!("openai")));
    assert!(asked["provider_id"].is_string() && asked["provider_id"] == model["provider_id"], "{asked}");
    let usage = &find(&frames, "session.idled").unwrap()["usage"];
    assert_eq!(usage["effective_cost_usd"], usage["estimated_cost_usd"], "{usage}");
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

#[tokio::test]
async fn what_a_session_has_had_is_looked_for() {
    let bench = Bench::start().await;
    let session = bench.sessions.create(&json!({})).await.unwrap();
    bench.answer(&session, &message("hello there")).await;
    let call = json!({ "name": "bash", "args": { "command": "echo Needle-7" } });
    let mut tagged = message(&script(&json!({ "steps": [[call]], "answer": "found" })));
    tagged["tags"] = json!(["urgent", "night"]);
    bench.answer(&session, &tagged).await;
    let look = async |query: &str| -> Vec<Value> {
        let path = format!("/sessions/{session}/events?limit=1000&{query}");
        let (status, listed) = bench.sessions.get(&path).await.unwrap();
        assert_eq!(status, 200, "{query}: {listed}");
        listed["data"].as_array().unwrap().clone()
    };
    let types = |events: &[Value]| -> Vec<String> {
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    };

    let all = look("").await;
    let said = look("tags=other&tags=urgent").await;
    assert_eq!(types(&said), ["input.message"]);
    assert_eq!(said[0]["tags"], json!(["urgent", "night"]));
    let tool = look("tool_name=bash&exclude=tool.output.delta").await;
    assert_eq!(types(&tool), ["act.started", "tool.started", "tool.completed", "capability.usage"]);
    let turn = tool[0]["context"]["turn_id"].as_str().unwrap();
    let of_turn = look(&format!("turn_id={turn}")).await;
    assert!(of_turn.len() < all.len() && of_turn.iter().all(|event| event["context"]["turn_id"] == turn));
    let exec = tool[0]["context"]["exec_id"].as_str().unwrap();
    let of_step = types(&look(&format!("exec_id={exec}&trace_id={turn}&types=tool.started")).await);
    assert_eq!(of_step, ["tool.started"]);
    let completed = types(&look("q=NEEDLE-7&types=tool.completed").await);
    assert_eq!((completed.len(), look("q=no+such+thing").await.len()), (1, 0));
    let began = of_turn[0]["ts"].as_str().unwrap();
    let (since, until) = (look(&format!("from_ts={began}")).await, look(&format!("to_ts={began}")).await);
    assert!(since.len() < all.len() && until.len() < all.len() && since.len() + until.len() > all.len());
    assert_eq!(look("from_ts=2000-01-01T00:00:00Z&to_ts=2000-01-02T00:00:00Z").await.len(), 0);
    for bad in ["from_ts=yesterday".to_owned(), "tags=x&".repeat(21)] {
        let path = format!("/sessions/{session}/events?{bad}");
        assert_eq!(bench.sessions.get(&path).await.unwrap().0, 400, "{bad}");
    }

    let generation = look(&format!("turn_id={turn}&types=llm.generation")).await.remove(0);
    let offered = generation["data"]["tools"].as_array().unwrap();
    let bash = offered.iter().find(|tool| tool["name"] == "bash").unwrap();
    assert!(!bash["description"].as_str().unwrap().is_empty());
    let names: Vec<_> = offered.iter().map(|tool| &tool["name"]).collect();
    let asked = bench.asked();
    let sent: Vec<_> =
        asked["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, sent, "what the model was offered");
}
