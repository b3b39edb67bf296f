//! What operators see of a request: its trace, its numbers.

use gateway::{Config, telemetry};
use runtime::telemetry::{LogFormat, Telemetry};

use crate::{
    agent::Act,
    conversation::plain,
    world::{World, json as reply},
};

/// One test, because a process has one telemetry.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_part_of_its_callers_trace_and_counted() {
    let config = runtime::telemetry::Config {
        service: "gateway",
        format: LogFormat::Text,
        filter: "off".to_owned(),
        export: true,
    };
    let process = Telemetry::start(&config).unwrap();
    let world = World::new(Config::default(), Act::Play(plain())).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    assert_eq!(reply(world.ask(r#"{"ask": "x"}"#).header("traceparent", trace)).await.0, 200);
    assert_eq!(reply(world.get("/nope")).await.0, 404);

    let asked = world.agent.asked.lock().unwrap();
    let passed_on = asked[0].1.get("traceparent").unwrap().to_str().unwrap();
    assert_eq!(passed_on[..36], trace[..36], "another trace");
    assert_ne!(passed_on, trace, "the span of the gateway is missing");
    assert!(asked[0].1.contains_key("grpc-timeout"));

    let metrics = process.metrics()();
    for line in [
        format!("{}{{route=\"/api/chat\",status=\"200\"}}", telemetry::HTTP_REQUESTS),
        format!("{}{{route=\"unmatched\",status=\"404\"}}", telemetry::HTTP_REQUESTS),
        format!("# TYPE {} ", telemetry::HTTP_LATENCY),
    ] {
        assert!(metrics.contains(&line), "{line} is not in:\n{metrics}");
    }
}
