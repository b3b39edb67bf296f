//! What is said at one replica reaches the run at another, and whoever reads follows it wherever it goes.

use std::{fs, io::Write as _};

use harness::{
    client::{self, Frame, Stream},
    process::Sleuth,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::fleet::{Fleet, Place, RUN_ENDS, SOON, TICK, TURN_ENDS, create, say, waits_for};

/// Reads up to and with an event.
async fn until(stream: &mut Stream, event: &str) -> Frame {
    let reading = async {
        loop {
            let frame = stream.next().await.unwrap().unwrap_or_else(|| panic!("it ends without {event}"));
            assert_ne!(frame.event, "error", "{frame:?}");
            if frame.event == event {
                return frame;
            }
        }
    };
    timeout(SOON, reading).await.unwrap_or_else(|_| panic!("{event} does not come"))
}

async fn watch(gateway: &Sleuth, session: &str) -> Stream {
    Stream::get(&gateway.url(&Place::Session(session).path(None)).unwrap()).await.unwrap()
}

async fn post(gateway: &Sleuth, path: &str, body: &Value) -> (u16, Value) {
    let (status, answer) = client::post(&gateway.url(path).unwrap(), body).await.unwrap();
    (status.as_u16(), answer)
}

/// Lets a command that waits for a file go on, until something has happened.
async fn released<T>(file: &std::path::Path, happens: impl Future<Output = T>) -> T {
    let release = async {
        loop {
            writeln!(fs::OpenOptions::new().append(true).open(file).unwrap(), "done").unwrap();
            tokio::time::sleep(10 * TICK).await;
        }
    };
    tokio::select! {
        happened = happens => happened,
        () = release => unreachable!("it writes until it is told"),
    }
}

#[tokio::test]
async fn any_gateway_serves_any_session_wherever_it_is_worked_on() {
    let Some(fleet) = Fleet::start().await else { return };
    let (here, there) = (fleet.gateway_of(0).await, fleet.gateway_of(1).await);
    let tools = json!([{ "type": "client_side", "name": "pick", "description": "Picks", "parameters": { "type": "object" } }]);
    let settings = json!({ "tools": tools, "hints": { "tool_approvals": true } });
    let session = create(&here.url("/api/v1/sessions").unwrap(), &settings).await;
    let mut reader = watch(&here, &session).await;

    // A person decides here about a call of a run there.
    let file = fleet.file("changed");
    let change = json!({ "command": format!("echo changed >> {}", file.display()) });
    let script = json!({ "steps": [[{ "name": "bash", "args": change }]], "answer": "changed" });
    say(&there.url("").unwrap(), &session, &script).await;
    let asked = until(&mut reader, "tool.approval_requested").await;
    let call = &asked.data["data"]["tool_call"]["id"];
    let decision = json!({ "decisions": [{ "tool_call_id": call, "decision": "allow" }] });
    let path = format!("/api/v1/sessions/{session}/tool-approvals");
    assert_eq!(post(&here, &path, &decision).await.0, 200);
    let ended = until(&mut reader, "turn.completed").await;
    assert_eq!(ended.data["data"]["final_answer_preview"], "changed");
    assert_eq!(fs::read_to_string(&file).unwrap(), "changed\n");
    until(&mut reader, TURN_ENDS).await;

    // A client brings here what a run there asked for.
    let script = json!({ "steps": [[{ "name": "pick", "args": {} }]], "answer": "picked" });
    say(&there.url("").unwrap(), &session, &script).await;
    let asked = until(&mut reader, "tool.call_requested").await;
    let call = &asked.data["data"]["tool_calls"][0]["id"];
    let results = json!({ "tool_results": [{ "tool_call_id": call, "result": 7 }] });
    let path = format!("/api/v1/sessions/{session}/tool-results");
    assert_eq!(post(&here, &path, &results).await.0, 200);
    let ended = until(&mut reader, "turn.completed").await;
    assert_eq!(ended.data["data"]["final_answer_preview"], "picked");
    until(&mut reader, TURN_ENDS).await;

    // And stops here what goes on there.
    let script = json!({ "steps": [[waits_for(&fleet.file("never"))]] });
    say(&there.url("").unwrap(), &session, &script).await;
    until(&mut reader, "tool.started").await;
    let (status, stopped) = post(&here, &format!("/api/v1/sessions/{session}/cancel"), &json!({})).await;
    assert_eq!((status, &stopped["status"]), (200, &json!("cancelled")));
    until(&mut reader, "turn.cancelled").await;
}

#[tokio::test]
async fn an_agent_that_drains_hands_over_and_its_readers_see_no_error() {
    let Some(mut fleet) = Fleet::start().await else { return };
    fleet.prefer(0);
    let (file, other) = (fleet.file("run"), fleet.file("session"));
    let script = |file| json!({ "steps": [[waits_for(file)]], "answer": "found" });
    let run = fleet.run(&script(&file)).await;
    let session = fleet.session(&script(&other)).await;
    let read = |place: &Place<'_>| {
        let url = fleet.url(&place.path(None));
        async move { Stream::get(&url).await.unwrap() }
    };
    let (mut of_run, mut of_session) = (read(&Place::Run(&run)).await, read(&Place::Session(&session)).await);
    until(&mut of_run, "start_tool_calling").await;
    until(&mut of_session, "tool.started").await;

    fleet.prefer(1);
    fleet.agents.remove(0).stop().await.unwrap();
    // The streams that were open all the time.
    let end = released(&file, until(&mut of_run, RUN_ENDS)).await;
    assert_eq!(end.data["analysis"], "found");
    let end = released(&other, until(&mut of_session, "turn.completed")).await;
    assert_eq!(end.data["data"]["final_answer_preview"], "found");
    for place in [Place::Run(&run), Place::Session(&session)] {
        let frames = place.read(|path| fleet.url(path)).await;
        let results = frames.iter().filter(|frame| frame.event.ends_with("tool_calling_result"));
        let completed = frames.iter().filter(|frame| frame.event == "tool.completed");
        let texts: Vec<_> = results.chain(completed).map(|frame| frame.data.to_string()).collect();
        let [text] = &texts[..] else { panic!("{texts:#?}") };
        assert!(text.contains("done"), "the command ran on: {text}");
    }
}

#[tokio::test]
async fn a_stream_of_a_session_stays_open_when_the_agent_behind_it_is_killed() {
    let Some(mut fleet) = Fleet::start().await else { return };
    fleet.prefer(0);
    let file = fleet.file("session");
    let script = json!({ "steps": [[waits_for(&file)]], "answer": "found" });
    let session = fleet.session(&script).await;
    let place = Place::Session(&session);
    let url = fleet.url(&place.path(None));
    let mut stream = Stream::get(&url).await.unwrap();
    until(&mut Stream::get(&url).await.unwrap(), "tool.started").await;

    fleet.prefer(1);
    fleet.agents.remove(0).kill().await.unwrap();
    let mut frames = Vec::new();
    let read = released(&file, place.listen(&mut stream, &mut frames));
    timeout(SOON, read).await.expect("the turn ends");
    assert_eq!(frames.last().map(|frame| frame.event.as_str()), Some(TURN_ENDS), "{frames:#?}");
    assert_eq!(frames, place.read(|path| fleet.url(path)).await);
    let repaired = frames.iter().filter(|frame| frame.event == "transcript.repaired").count();
    assert_eq!(repaired, 1, "it was taken over: {frames:#?}");
}

#[tokio::test]
async fn runs_go_on_when_their_database_was_away_for_long() {
    let Some(mut fleet) = Fleet::start().await else { return };
    let (file, other) = (fleet.file("run"), fleet.file("session"));
    let script = |file| json!({ "steps": [[waits_for(file)]], "answer": "found" });
    let run = fleet.run(&script(&file)).await;
    let session = fleet.session(&script(&other)).await;
    let url = fleet.url(&Place::Run(&run).path(None));
    until(&mut Stream::get(&url).await.unwrap(), "start_tool_calling").await;
    let url = fleet.url(&Place::Session(&session).path(None));
    until(&mut Stream::get(&url).await.unwrap(), "tool.started").await;

    fleet.postgres.kill().await.unwrap();
    // What the commands say cannot be kept, for longer than it is tried.
    let left = |agent: &Sleuth| agent.log().iter().filter(|line| line.contains("cannot publish")).count();
    let away = released(&file, async {
        released(&other, async {
            while fleet.agents.iter().map(left).sum::<usize>() < 2 {
                tokio::time::sleep(TICK).await;
            }
        })
        .await;
    });
    timeout(SOON, away).await.expect("the runs are left");
    fleet.postgres.start_again().await.unwrap();
    for place in [Place::Run(&run), Place::Session(&session)] {
        let frames = place.read(|path| fleet.url(path)).await;
        let text =
            serde_json::to_string(&frames.iter().map(|frame| &frame.data).collect::<Vec<_>>()).unwrap();
        assert!(text.contains("found"), "{frames:#?}");
    }
}
