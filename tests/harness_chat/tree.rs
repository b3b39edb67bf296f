//! A tree of fifty agents with relays, denials and clients that come and go, after which nothing is left.

use fastrand::Rng;
use harness::process::{descendants, workspaces};
use serde_json::{Value, json};

use crate::bench::{Bench, Chat, SOON, answer, asking, bash, call, until};

/// Agents beside the first one.
const AGENTS: usize = 50;
/// How deep agents may be.
const DEEPEST: usize = 4;
const SEEDS: [u64; 3] = [1, 7, 42];

/// An agent of a tree: its parts, and whether it wants to change something.
#[derive(Default)]
struct Node {
    parts: Vec<usize>,
    changes: bool,
}

/// A random tree, the first agent first.
fn tree(rng: &mut Rng) -> Vec<Node> {
    let mut nodes = vec![Node::default()];
    let mut depths = vec![0];
    while nodes.len() <= AGENTS {
        let parent = rng.usize(..nodes.len());
        if depths[parent] < DEEPEST {
            let child = nodes.len();
            nodes[parent].parts.push(child);
            nodes.push(Node { parts: Vec::new(), changes: rng.u8(..3) == 0 });
            depths.push(depths[parent] + 1);
        }
    }
    nodes
}

/// What the model of an agent says: it looks or changes something, and gives its parts to others, at once.
fn script(nodes: &[Node], at: usize, last: &Value) -> Value {
    let node = &nodes[at];
    let own = if node.changes { bash(&format!("mkdir d{at}")) } else { bash(&format!("echo {at}")) };
    let parts = node.parts.iter().map(|part| {
        let script = script(nodes, *part, last);
        call("agent", json!({"task": format!("part {part} FAKE_LLM{script}")}))
    });
    let mut steps = vec![json!(std::iter::once(own).chain(parts).collect::<Vec<_>>())];
    if let (true, Value::Object(_)) = (node.parts.is_empty(), last) {
        steps.push(json!([last]));
    }
    json!({"steps": steps, "answer": format!("agent {at} is done")})
}

/// The value of a metric, all of its series together.
async fn metric(bench: &Bench, name: &str) -> f64 {
    let text = reqwest::get(bench.sleuth.url("/metrics").unwrap()).await.unwrap().text().await.unwrap();
    let series = text.lines().filter(|line| line.starts_with(name));
    series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

async fn nothing_is_left(bench: &Bench, idle: &[String]) {
    until("the end of all processes", async || commands(bench).iter().all(|one| idle.contains(one))).await;
    until("the end of all workspaces", async || workspaces(bench.folder.path()).is_empty()).await;
    until("the end of all runs", async || metric(bench, "sleuth_runs_active").await == 0.0).await;
    assert!(bench.openai.until_idle(SOON).await, "a model is asked");
}

/// The commands of all processes of the server.
fn commands(bench: &Bench) -> Vec<String> {
    let mut all: Vec<_> =
        descendants(bench.sleuth.id().unwrap()).into_iter().map(|(_, command)| command).collect();
    all.sort_unstable();
    all
}

async fn bench(grace: &str) -> Bench {
    Bench::with(|start, folder| {
        let state = folder.path().join("executor");
        start.env("SLEUTH_EXECUTOR_STATE", state).env("SLEUTH_DISCONNECT_GRACE", grace)
    })
    .await
}

#[tokio::test]
async fn fifty_agents_end_with_all_that_they_started() {
    let bench = bench("60").await;
    let idle = commands(&bench);
    for seed in SEEDS {
        let mut rng = Rng::with_seed(seed);
        let nodes = tree(&mut rng);
        let body = asking(&script(&nodes, 0, &Value::Null), json!({}));
        let mut chat = Chat::open(&bench.url(), &body).await;
        let mut denied = 0;
        while let Some(frame) = chat.next().await {
            if frame.event == "relay" {
                let approved = rng.bool();
                denied += usize::from(!approved);
                let (id, response) = (frame.data["id"].as_str().unwrap(), json!({"approved": approved}));
                assert_eq!(bench.answer(chat.session(), id, response).await.0, 200, "seed {seed}");
            }
            if frame.event != "harness_end" && rng.u8(..40) == 0 {
                chat = chat.back(&bench.url(), &body).await;
            }
        }
        let relays = nodes.iter().filter(|node| node.changes).count();
        let outputs = chat.outputs();
        let refused = outputs.iter().filter(|output| output["status"] == "denied").count();
        assert_eq!((chat.all("relay").len(), refused), (relays, denied), "seed {seed}");
        let (starts, ends) = (chat.all("harness_start"), chat.all("harness_end"));
        assert_eq!((starts.len(), ends.len()), (AGENTS + 1, AGENTS + 1), "seed {seed}");
        assert!(ends.iter().all(|end| end["reason"] == "final"));
        assert_eq!(outputs.len(), 2 * AGENTS + 1, "each agent and each command has its result");
        nothing_is_left(&bench, &idle).await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_takes_fifty_agents_with_it() {
    let bench = bench("1").await;
    let idle = commands(&bench);
    let mut rng = Rng::with_seed(SEEDS[0]);
    let nodes = tree(&mut rng);
    let stuck = call("bash", json!({"command": "tail -f /dev/null", "timeout": 600}));
    let mut chat = Chat::open(&bench.url(), &asking(&script(&nodes, 0, &stuck), json!({}))).await;
    let relay = chat.until("relay").await.unwrap();
    let tails = |command: &&String| command.starts_with("tail -f");
    until("a command that does not end", async || commands(&bench).iter().any(|one| tails(&one))).await;
    let session = chat.session().to_owned();
    drop(chat);
    nothing_is_left(&bench, &idle).await;
    let late = answer(&bench.url(), &session, relay["id"].as_str().unwrap(), json!({"approved": true})).await;
    assert_eq!(late, (404, json!({"error": "Session not found"})));
}

#[tokio::test]
async fn the_budget_of_a_tree_is_one() {
    let openai_rounds = json!({"rounds": 3, "args": {"command": "echo {r}"}, "answer": "part"});
    let part = call("agent", json!({"task": format!("part FAKE_LLM{openai_rounds}")}));
    let script =
        json!({"steps": [[part.clone(), part.clone(), part]], "answer": "all", "prompt_tokens": 1000});
    let bench = Bench::with(|start, _| start.arg("--max-tokens").arg("1500")).await;
    let mut chat = bench.open(&script, None).await;
    chat.end().await;
    let ended: Vec<_> = chat.all("harness_end").iter().map(|end| end["reason"].clone()).collect();
    assert!(ended.iter().any(|reason| reason == "max_iterations"), "{ended:?}");
    assert!(chat.all("usage").len() < 16, "three agents with four calls each would be more than that");
}
