//! Sessions as internal services use them: typed events over gRPC, and cursors that hold there and over HTTP alike.

#![cfg(test)]

use std::time::Duration;

use harness::{
    models::ScriptedOpenAi,
    process::Start,
    sessions::{Sessions, until},
};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::timeout;
use tonic::Code;
use wire::{
    agent::Caller,
    session::{
        CancelTurnRequest, ContentPart, CreateSessionRequest, Cursor, Event, GetSessionRequest, Message,
        PostMessageRequest, SessionStatus, WatchRequest, content_part::Part, cursor::Place, event::Data,
        sessions_client::SessionsClient,
    },
};

const SOON: Duration = Duration::from_secs(90);

async fn next(events: &mut tonic::Streaming<Event>) -> Event {
    timeout(SOON, events.message()).await.expect("an event comes").unwrap().expect("the stream goes on")
}

#[tokio::test]
async fn a_service_creates_says_watches_and_stops() {
    let (openai, data) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
    let list = format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
    let start = Start::serve().env("SLEUTH_DATA_DIR", data.path());
    let sleuth = start.models(&list).unwrap().start().await.unwrap();
    let mut client = SessionsClient::connect(sleuth.grpc().unwrap()).await.unwrap();
    let created = client.create_session(CreateSessionRequest::default()).await.unwrap().into_inner();
    let session = created.session.unwrap();
    assert_eq!(session.status(), SessionStatus::Started);
    let session_id = session.id;

    let beginning = Some(Cursor { place: Some(Place::AfterSequence(0)) });
    let watch = WatchRequest { session_id: session_id.clone(), cursor: beginning, ..WatchRequest::default() };
    let mut events = client.watch(watch.clone()).await.unwrap().into_inner();
    let part = ContentPart { part: Some(Part::Text(format!("look FAKE_LLM{}", json!({ "hang": true })))) };
    let message = Message { content: vec![part], ..Message::default() };
    let say = PostMessageRequest {
        session_id: session_id.clone(),
        message: Some(message),
        client_message_id: "once".to_owned(),
        ..PostMessageRequest::default()
    };
    let said = client.post_message(say.clone()).await.unwrap().into_inner();
    assert_eq!(client.post_message(say).await.unwrap().into_inner(), said, "said once");
    let first = next(&mut events).await;
    assert!(matches!(&first.data, Some(Data::InputMessage(input)) if input.message == said.message));
    while !matches!(next(&mut events).await.data, Some(Data::OutputMessageStarted(_))) {}

    // Somebody else's session does not exist.
    let caller = Some(Caller { account: "other".to_owned(), ..Caller::default() });
    let theirs = GetSessionRequest { caller, session_id: session_id.clone() };
    assert_eq!(client.get_session(theirs).await.unwrap_err().code(), Code::NotFound);

    let stop = CancelTurnRequest { session_id: session_id.clone(), ..CancelTurnRequest::default() };
    assert!(client.cancel_turn(stop.clone()).await.unwrap().into_inner().cancelled);
    assert!(!client.cancel_turn(stop).await.unwrap().into_inner().cancelled);
    let mut rest = Vec::new();
    loop {
        let event = next(&mut events).await;
        let last = matches!(event.data, Some(Data::SessionIdled(_)));
        rest.push(event);
        if last {
            break;
        }
    }
    assert!(rest.iter().any(|event| matches!(event.data, Some(Data::TurnCancelled(_)))));

    // An id of gRPC is a place over HTTP.
    let sessions = Sessions::of(&sleuth).unwrap();
    let mut stream = sessions.watch(&session_id, &format!("since_id={}", first.id)).await.unwrap();
    let frames = until(&mut stream, "session.idled").await.unwrap();
    assert_eq!(frames[1].data["sequence"], first.sequence + 1);
    assert_eq!(frames.last().unwrap().id, rest.last().unwrap().id);
    let foreign = Some(Cursor { place: Some(Place::SinceId("event_1".to_owned())) });
    let refused = client.watch(WatchRequest { cursor: foreign, ..watch }).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
}
