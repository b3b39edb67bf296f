//! A question about a cluster that is asked again: it is the same run, whatever is connected by then.

use harness::process::{Sleuth, Start};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use crate::world::{Bench, SOON, executor, key, until_connected};

/// How a question comes again.
#[derive(Clone, Copy, Debug)]
enum Again<'a> {
    /// After an event that was seen.
    After(&'a str),
    /// Under its key.
    Key,
}

struct Robusta {
    gateway: Sleuth,
    client: Client,
}

impl Robusta {
    async fn before(hub: &Sleuth) -> Self {
        let start = Start::new(["gateway", "--http", "127.0.0.1:0", "--agent", &hub.grpc().unwrap()]);
        Self { gateway: start.start().await.unwrap(), client: Client::new() }
    }

    fn ask(&self, body: &Value, again: Again<'_>) -> RequestBuilder {
        let url = self.gateway.url("/api/holmes/default/chat").unwrap();
        let request = self.client.post(url).json(body).timeout(SOON);
        match again {
            Again::After(place) => request.header("last-event-id", place),
            Again::Key => request.header("idempotency-key", "once"),
        }
    }

    /// The run, and the stream as text.
    async fn stream(&self, body: &Value, again: Again<'_>) -> (String, String) {
        let answer = self.ask(body, again).send().await.unwrap();
        let (status, run) = (answer.status(), answer.headers().get("x-sleuth-run-id").cloned());
        let text = answer.text().await.unwrap();
        assert_eq!(status, 200, "{again:?}: {text}");
        (run.unwrap().to_str().unwrap().to_owned(), text)
    }
}

/// What the last event of a stream says.
fn end(stream: &str) -> Value {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
    serde_json::from_str(data).unwrap()
}

#[tokio::test]
async fn a_question_that_comes_again_is_the_same_run_whatever_is_connected() {
    let mut bench = Bench::start(&[]).await;
    let eu = bench.connect(&["eu"]).await.remove(0);
    let robusta = Robusta::before(&bench.hub).await;
    let streamed = json!({ "ask": "Why is checkout slow?", "stream": true });
    let (run, whole) = robusta.stream(&streamed, Again::Key).await;
    assert_eq!(end(&whole)["cluster_id"], "eu", "{whole}");
    let gathered = json!({ "ask": "Why is checkout slow?" });
    let place = format!("{run}:1");
    let asked = bench.openai.requests().len();

    eu.stop().await.unwrap();
    until_connected(&mut bench.agent, &[]).await;
    let mut others = Vec::new();
    for (comes, connected) in [(None, &[] as &[&str]), (Some("us"), &["us"]), (Some("asia"), &["asia", "us"])]
    {
        if let Some(name) = comes {
            let token = key(&bench.hub, &[name], true).await;
            others.push(executor(bench.folder(), bench.grpc(), name, &token).await);
        }
        until_connected(&mut bench.agent, connected).await;
        for again in [Again::Key, Again::After(&place)] {
            let (same, rest) = robusta.stream(&streamed, again).await;
            assert_eq!(
                (&same, &end(&rest)["cluster_id"]),
                (&run, &json!("eu")),
                "{again:?} {connected:?}: {rest}"
            );
        }
        let answer = robusta.ask(&gathered, Again::After(&place)).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{connected:?}");
        assert_eq!(answer.json::<Value>().await.unwrap()["cluster_id"], "eu", "{connected:?}");
    }
    assert_eq!(bench.openai.requests().len(), asked, "no model was asked again");

    // Under the key of another question there is none to go on with.
    let other =
        robusta.ask(&json!({ "ask": "And on us?", "cluster_id": "us" }), Again::Key).send().await.unwrap();
    assert_eq!(other.status(), 409, "{}", other.text().await.unwrap());
}
