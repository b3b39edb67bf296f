//! Clusters in network namespaces of their own, out of which they dial and into which nothing leads, and two hubs:
//! chats reach the right cluster while links are cut and moved under them.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use harness::{
    components::{cluster, has},
    link::Link,
    models::ScriptedOpenAi,
    postgres::Postgres,
    process::{Sleuth, Start},
};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    namespace::Namespace,
    world::{TICK, free_port},
};

const KEY: &str = "the-key-of-the-hubs";
const PATIENCE: Duration = Duration::from_secs(180);
/// How long a way is cut.
const CUT: Duration = Duration::from_secs(1);
/// What a model reads of a call of which nobody knows whether it was done.
const IN_DOUBT: &str = "nobody knows whether it did";

/// How much there is of something, for those who want more of it: `tests/clusters/many`.
fn size(of: &str, usual: usize) -> usize {
    std::env::var(of).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A hub with a gateway before it.
struct Hub {
    agent: Sleuth,
    gateway: Sleuth,
}

impl Hub {
    async fn start(openai: &ScriptedOpenAi, store: &str, host: &str) -> Self {
        let address = format!("{host}:{}", free_port().await);
        let url = format!("http://{address}");
        let models =
            format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", openai.url());
        let agent = Start::new(["agent", "--executor", "none", "--grpc", &address, "--advertise", &url]);
        let agent = agent.arg("--store").arg(store).models(&models).unwrap().env("SLEUTH_API_KEY", KEY);
        let agent = agent.start().await.unwrap();
        let gateway = Start::new(["gateway", "--http", "127.0.0.1:0", "--agent", &url]);
        let gateway = gateway.env("SLEUTH_API_KEY", KEY).start().await.unwrap();
        Self { agent, gateway }
    }

    fn grpc(&self) -> SocketAddr {
        self.agent.address("grpc").unwrap()
    }

    async fn sleuth(&self, arguments: &[&str]) -> String {
        let start = Start::new(arguments.iter().copied()).env("SLEUTH_API_KEY", KEY);
        let start = start.env("SLEUTH_SERVER", format!("http://{}", self.grpc()));
        let output = start.command().unwrap().output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    async fn until_connected(&self) {
        let reached = async {
            loop {
                let clusters = self.sleuth(&["clusters", "--json"]).await;
                if clusters.contains("\"eu\"") && clusters.contains("\"us\"") {
                    return;
                }
                tokio::time::sleep(TICK).await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.unwrap();
    }
}

/// One chat: where it is asked, about which cluster, and what it does there.
struct Chat {
    url: String,
    cluster: &'static str,
    /// What only reads is done as often, and so is what changes something.
    calls: usize,
    kubectl: bool,
    /// A file whose lines have numbers.
    numbers: PathBuf,
    /// The files that it makes begin with this.
    file: PathBuf,
}

impl Chat {
    fn steps(&self) -> Vec<Value> {
        let call = |command: &str, prefix: &[&str]| json!([{ "name": "bash", "args": { "command": command, "suggested_prefixes": prefix } }]);
        // The same call again would not be run.
        let pairs = (1..=self.calls).flat_map(|number| {
            let read = format!("head -n {number} {}", self.numbers.display());
            let change = format!("mktemp {}-{number}-XXXXXX; sleep 0.2; printenv WHERE", self.file.display());
            [call(&read, &["head"]), call(&change, &["mktemp", "sleep", "printenv"])]
        });
        let look = call("kubectl get namespaces default -o name", &["kubectl"]);
        pairs.chain(self.kubectl.then_some(look)).collect()
    }

    /// Asks, and says so once the run has begun. The last lines of the results of its calls.
    async fn ask(&self, client: Client, begun: mpsc::Sender<()>) -> Vec<String> {
        let script = json!({ "steps": self.steps(), "answer": "done" });
        let body = json!({
            "ask": format!("look FAKE_LLM{script}"), "cluster_id": self.cluster, "stream": true,
        });
        let request = client.post(&self.url).bearer_auth(KEY).timeout(PATIENCE).json(&body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        begun.send(()).await.unwrap();
        let text = answer.text().await.unwrap();
        assert_eq!(text.matches("event: ai_answer_end").count(), 1, "{text}");
        let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let events = events.map(|data| serde_json::from_str::<Value>(data).unwrap());
        let results = events.filter(|event| event["result"].is_object());
        results.map(|event| said(&event["result"])).collect()
    }

    /// Everything that it asked for was done where it was to be done, and once.
    fn check(&self, results: &[String], made: &BTreeMap<String, usize>) {
        let (pairs, look) = results.split_at(2 * self.calls);
        for (number, pair) in (1_usize..).zip(pairs.chunks(2)) {
            assert_eq!(pair[0], number.to_string(), "{results:?}");
            let name = self.file.file_name().unwrap().to_str().unwrap();
            let times = made.get(&format!("{name}-{number}")).copied().unwrap_or_default();
            // Nothing is done twice, and what is not known to be done says so.
            let in_doubt = pair[1].contains(IN_DOUBT);
            assert!(times == 1 || times == 0 && in_doubt, "{times}: {results:?}");
            assert!(in_doubt || pair[1] == format!("at-{}", self.cluster), "{results:?}");
        }
        let expected: Vec<_> = self.kubectl.then_some("namespace/default").into_iter().collect();
        assert_eq!(look, expected);
    }
}

/// The last line of a result.
fn said(result: &Value) -> String {
    let data = result["data"].as_str().and_then(|data| data.lines().last());
    data.map_or_else(|| result.to_string(), str::to_owned)
}

/// How often each file was made.
fn made(folder: &Path) -> BTreeMap<String, usize> {
    let mut made = BTreeMap::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let (call, _) = name.rsplit_once('-').unwrap();
        *made.entry(call.to_owned()).or_default() += 1;
    }
    made
}

/// Chats over both hubs about both clusters, at the same time.
fn chats(hubs: &[Hub; 2], round: usize, folder: &Path, kubectl: bool) -> Vec<Chat> {
    let calls = size("SLEUTH_TEST_CALLS", 4);
    let numbers = folder.with_extension("numbers");
    let lines = (1..=calls).map(|number| format!("{number}\n"));
    std::fs::write(&numbers, lines.collect::<String>()).unwrap();
    let chat = |number: usize| Chat {
        url: hubs[number % 2].gateway.url("/api/holmes/default/chat").unwrap(),
        cluster: if (number / 2).is_multiple_of(2) { "eu" } else { "us" },
        calls,
        kubectl,
        numbers: numbers.clone(),
        file: folder.join(format!("{round}-{number}")),
    };
    (0..size("SLEUTH_TEST_CHATS", 12)).map(chat).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chats_reach_the_right_cluster_while_links_are_cut_and_moved() {
    let (first, second) = (Namespace::new(0).await, Namespace::new(1).await);
    if !has("network namespaces", first.is_some() && second.is_some()) {
        return;
    }
    let (first, second) = (first.unwrap(), second.unwrap());
    let Some(postgres) = Postgres::start().await.unwrap() else { return };
    let store = postgres.database("namespaces").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    std::fs::create_dir(&files).unwrap();
    let openai = ScriptedOpenAi::start().await.unwrap();
    let hubs = [
        Hub::start(&openai, &store, &first.gateway).await,
        Hub::start(&openai, &store, &second.gateway).await,
    ];
    // The ways of the clusters lead to one hub each, and will change.
    let eu_way = Link::at(&format!("{}:0", first.gateway), [hubs[0].grpc()]).await.unwrap();
    let us_way = Link::at(&format!("{}:0", second.gateway), [hubs[1].grpc()]).await.unwrap();
    let mut executors = Vec::new();
    let mut api_servers = Vec::new();
    for (namespace, way, name) in [(&first, &eu_way, "eu"), (&second, &us_way, "us")] {
        let token = hubs[0].sleuth(&["keys", "create", "--join", "--cluster", name]).await;
        let kubeconfig = folder.path().join(format!("{name}.yaml"));
        api_servers.extend(reachable(&kubeconfig, &namespace.gateway).await);
        executors.push(namespace.executor(folder.path(), way.address(), name, &token, &kubeconfig));
    }
    for hub in &hubs {
        hub.until_connected().await;
    }
    assert_eq!((first.listeners().await, second.listeners().await), (String::new(), String::new()));

    let (client, kubectl) = (Client::new(), !api_servers.is_empty());
    for round in 0..size("SLEUTH_TEST_ROUNDS", 1) {
        let (mut asked, mut all) = (JoinSet::new(), chats(&hubs, round, &files, kubectl));
        let (begun, mut beginnings) = mpsc::channel(all.len());
        for chat in all.drain(..) {
            let (client, begun) = (client.clone(), begun.clone());
            asked.spawn(async move { (chat.ask(client, begun).await, chat) });
        }
        for _ in 0..asked.len() {
            tokio::time::timeout(PATIENCE, beginnings.recv()).await.unwrap().unwrap();
        }
        // While they go on: a way is cut and mended, and both clusters come to the other hub.
        first.set("down").await;
        lead(&us_way, &hubs[round % 2]);
        tokio::time::sleep(CUT).await;
        first.set("up").await;
        lead(&eu_way, &hubs[(round + 1) % 2]);
        let ended: Vec<_> = asked.join_all().await;
        let made = made(&files);
        for (results, chat) in &ended {
            chat.check(results, &made);
        }
        for hub in &hubs {
            hub.until_connected().await;
        }
    }
}

/// A kubeconfig for the test cluster, if there is one, by way of an address of this machine.
async fn reachable(kubeconfig: &Path, host: &str) -> Option<Link> {
    let text = std::fs::read_to_string(cluster()?).unwrap();
    let mut config: Value = serde_saphyr::from_str(&text).unwrap();
    let cluster = &mut config["clusters"][0]["cluster"];
    let server = cluster["server"].as_str().unwrap().trim_start_matches("https://").to_owned();
    let way = Link::at(&format!("{host}:0"), [server.parse().unwrap()]).await.unwrap();
    cluster["server"] = format!("https://{}", way.address()).into();
    // Its certificate is not for that address.
    cluster.as_object_mut().unwrap().remove("certificate-authority-data");
    cluster["insecure-skip-tls-verify"] = true.into();
    std::fs::write(kubeconfig, config.to_string()).unwrap();
    Some(way)
}

/// Has a way lead to a hub, and all that is on it come anew.
fn lead(way: &Link, to: &Hub) {
    way.aim([to.grpc()]);
    way.cut();
}
