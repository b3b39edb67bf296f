//! Streams that are slow, left, cut or too many.

use std::{sync::atomic::Ordering, time::Duration};

use domain::{EventKind, Gate};
use gateway::Config;
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    time::{Instant, timeout},
};
use tonic::Code;

use crate::{
    agent::Act,
    conversation::{call, counted, plain, started},
    world::{DEADLINE, World, json as reply},
};

const STREAM: &str = r#"{"ask": "x", "stream": true}"#;
const SHORT: Duration = Duration::from_millis(50);

fn hang() -> Act {
    Act::Hang(vec![started(Vec::new()), counted(1)])
}

#[tokio::test]
async fn silence_is_filled_with_comments() {
    let world = World::new(Config { heartbeat: SHORT, ..Config::default() }, hang()).await;
    let mut stream = world.ask(STREAM).send().await.unwrap();
    let first = stream.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: token_count\n"), "{first:?}");
    for _ in 0..2 {
        assert_eq!(stream.chunk().await.unwrap().unwrap(), ": heartbeat\n");
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_call_at_the_agent() {
    for body in [STREAM, r#"{"ask": "x"}"#] {
        let world = World::new(Config::default(), hang()).await;
        let mut client = TcpStream::connect(&world.address).await.unwrap();
        let length = body.len();
        let head =
            format!("POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}");
        client.write_all(head.as_bytes()).await.unwrap();
        while world.agent.sent.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        drop(client);
        timeout(Duration::from_secs(1), world.agent.left.notified())
            .await
            .expect("the agent's stream goes on");
    }
}

#[tokio::test]
async fn an_answer_that_takes_too_long_is_ended() {
    let config = Config { answer_deadline: SHORT, ..Config::default() };
    let world = World::new(config, hang()).await;
    let text = world.ask(STREAM).send().await.unwrap().text().await.unwrap();
    let end = "event: error\ndata: {\"description\":\"The answer took too long\",\"error_code\":1,\
               \"msg\":\"The answer took too long\",\"success\":false}\n\n";
    assert!(text.ends_with(end), "{text}");
    assert_eq!(reply(world.ask(r#"{"ask": "x"}"#)).await.0, 504);
}

#[tokio::test]
async fn an_agent_that_is_lost_is_an_error_at_the_end() {
    let config = Config { agent_patience: Duration::ZERO, ..Config::default() };
    let world = World::new(config, Act::Play(vec![started(Vec::new()), counted(1)])).await;
    let text = world.ask(STREAM).send().await.unwrap().text().await.unwrap();
    assert!(text.contains("event: token_count"));
    assert!(
        text.contains("event: error\ndata: {\"description\":\"The agent ended the run without an end\""),
        "{text}"
    );
    assert_eq!(reply(world.ask(r#"{"ask": "x"}"#)).await.0, 500);
}

#[tokio::test]
async fn answers_beyond_the_limit_are_refused_until_one_ends() {
    let world = World::new(Config { max_answers: 1, ..Config::default() }, hang()).await;
    let first = world.ask(STREAM).send().await.unwrap();
    let second = world.ask(STREAM).send().await.unwrap();
    assert_eq!(second.status(), 429);
    assert_eq!(second.headers()["retry-after"], "5");
    drop(first);
    timeout(DEADLINE, async { while world.ask(STREAM).send().await.unwrap().status() != 200 {} })
        .await
        .unwrap();
}

#[tokio::test]
async fn a_server_that_stops_lets_answers_finish_and_then_ends_them() {
    let mut world = World::new(Config { drain: SHORT, ..Config::default() }, hang()).await;
    let stream = world.ask(STREAM).send().await.unwrap();
    let keyed = world.ask(STREAM).header("idempotency-key", "again").send().await.unwrap();
    let back = world.get("/api/runs/run-1/events").send().await.unwrap();
    let stopping = Instant::now();
    world.shutdown.cancel();
    let text = stream.text().await.unwrap();
    assert!(stopping.elapsed() >= SHORT, "ended before the drain was over");
    let last = text.lines().filter_map(|line| line.strip_prefix("id: ")).next_back().unwrap();
    let hint = format!("`Last-Event-ID: {last}`");
    assert!(text.contains("The server is shutting down") && text.contains(&hint), "{text}");
    for back in [back, keyed] {
        let text = back.text().await.unwrap();
        assert!(!text.contains("shutting down"), "who comes back finds the run elsewhere: {text}");
    }
    timeout(DEADLINE, &mut world.serving).await.unwrap().unwrap().unwrap();
    assert!(world.get("/healthz").send().await.is_err(), "nothing listens any more");
}

#[tokio::test]
async fn a_server_without_answers_stops_at_once() {
    let mut world = World::new(Config { drain: DEADLINE * 2, ..Config::default() }, Act::Play(plain())).await;
    world.get("/healthz").send().await.unwrap();
    world.shutdown.cancel();
    timeout(DEADLINE, &mut world.serving)
        .await
        .expect("idle connections hold the server up")
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let world = World::new(Config { body_deadline: SHORT, ..Config::default() }, Act::Play(plain())).await;
    let silence = futures_util::stream::pending::<Result<String, std::io::Error>>();
    let body = reqwest::Body::wrap_stream(silence);
    let (status, _) = reply(world.request(reqwest::Method::POST, "/api/chat").body(body)).await;
    assert_eq!(status, 408);
}

#[tokio::test]
async fn an_agent_that_cannot_be_reached_is_503() {
    let channel = tonic::transport::Endpoint::from_static("http://127.0.0.1:1").connect_lazy();
    let gateway = gateway::Gateway::new(Config::default(), wire::transport(channel));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(gateway.serve(listener, tokio_util::sync::CancellationToken::new()));
    for (path, detail) in [
        ("/readyz", "Service not ready: the agent cannot be reached"),
        ("/api/model", "The agent cannot be reached"),
    ] {
        let response = reqwest::get(format!("http://{address}{path}")).await.unwrap();
        assert_eq!(response.status(), 503, "{:?}", Code::Unavailable);
        assert!(response.text().await.unwrap().contains(detail));
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_reader_that_stops_reading_holds_nothing_up_and_is_dropped() {
    let description = "x".repeat(10_000);
    let event = EventKind::ToolStarted {
        call: call("c", "bash", "{}"),
        description,
        toolset: None,
        cluster: None,
        gate: Gate::Open,
        by: None,
    };
    let most = 20_000;
    let config = Config { stalled_reader: Duration::from_millis(500), ..Config::default() };
    let world = World::new(config, Act::Flood(Box::new(event), most)).await;
    let _unread = world.ask(STREAM).send().await.unwrap();
    timeout(DEADLINE, world.agent.left.notified()).await.expect("the reader is kept");
    let sent = world.agent.sent.load(Ordering::SeqCst);
    assert!(sent < most / 2, "{sent} events were taken for a reader that takes none");
}
