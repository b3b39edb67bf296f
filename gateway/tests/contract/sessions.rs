//! Sessions whose agent is lost.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use gateway::Config;
use http::{Request, Response};
use serde_json::json;
use tonic::{Status, body::Body, server::Grpc};
use tonic_prost::ProstCodec;
use tower::service_fn;
use wire::session::{
    Context, Event, PostMessageRequest, PostMessageResponse, SessionIdled, WatchRequest, event::Data,
};

use crate::{
    agent::{Act, Stage},
    world::{World, json as reply},
};

const TURN: &str = "turn_1";

/// Takes a message, is lost when it is watched for the first time, and has the end of the turn from then on.
async fn serve(request: Request<Body>, watched: Arc<AtomicU32>) -> Result<Response<Body>, Infallible> {
    let posts = request.uri().path().ends_with("/PostMessage");
    assert!(posts || request.uri().path().ends_with("/Watch"), "{}", request.uri());
    if posts {
        let post = async |_: tonic::Request<PostMessageRequest>| {
            let turn_id = TURN.to_owned();
            Ok(tonic::Response::new(PostMessageResponse { message: None, sequence: 1, turn_id }))
        };
        return Ok(Grpc::new(ProstCodec::default()).unary(service_fn(post), request).await);
    }
    let watch = move |_: tonic::Request<WatchRequest>| {
        let is_lost = watched.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if is_lost {
                return Err(Status::unavailable("lost"));
            }
            let context = Some(Context { turn_id: TURN.to_owned(), ..Context::default() });
            let data = Some(Data::SessionIdled(SessionIdled::default()));
            let idled = Event { id: "event_2".to_owned(), sequence: 2, context, data, ..Event::default() };
            Ok(tonic::Response::new(futures_util::stream::iter([Ok::<_, Status>(idled)])))
        }
    };
    Ok(Grpc::new(ProstCodec::default()).server_streaming(service_fn(watch), request).await)
}

#[tokio::test]
async fn whoever_waits_for_an_answer_gets_it_though_the_agent_that_took_the_message_is_lost() {
    let watched = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&watched);
    let agent = wire::transport(service_fn(move |request| serve(request, Arc::clone(&counted))));
    let world = World::before(agent, Config::default(), Stage::new(Act::Play(Vec::new()))).await;
    let path = format!("/v1/sessions/session_{}/messages?wait=true", "0".repeat(32));
    let message = json!({ "message": { "content": [{ "type": "text", "text": "Hi" }] } });
    let (status, waited) = reply(world.post(&path, &message.to_string())).await;
    assert_eq!((status, &waited["status"]), (200, &json!("completed")), "{waited}");
    assert_eq!(watched.load(Ordering::SeqCst), 2);
}
