//! The commands of pages, run as they stand there.

#![cfg(test)]

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use futures_util::future::join_all;
use harness::{
    models::{Script, ScriptedOpenAi},
    postgres::Postgres,
    process,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{net::TcpListener, process::Command, time::timeout};

const PATIENCE: Duration = Duration::from_secs(300);
const CLUSTERS: &str = "docs/clusters.md";
const TWO: &str = "## Two clusters in ten minutes";
const SEVERAL: &str = "## Several executors behind one name";

/// The commands of a section of a page.
struct Guide {
    blocks: Vec<String>,
    folder: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Guide {
    fn of(page: &str, section: &str) -> Self {
        let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(page);
        let page = std::fs::read_to_string(page).unwrap();
        let (_, section) = page.split_once(&format!("\n{section}\n")).expect("the section is there");
        let section = section.split("\n#").next().unwrap();
        let blocks = section.split("```sh\n").skip(1);
        let blocks = blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect();
        Self { blocks, folder: TempDir::new().unwrap(), variables: Vec::new() }
    }

    /// Says something else in its place.
    fn replace(&mut self, text: &str, other: &str) {
        for block in &mut self.blocks {
            *block = block.replace(text, other);
        }
    }

    fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.variables.push((name, value.into()));
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder().join(name)).unwrap_or_default()
    }

    /// What each block prints.
    async fn run(&self) -> Vec<String> {
        let mut script = "set -eu -o pipefail\ntrap 'kill $(jobs -p) || true' EXIT\n".to_owned();
        for (at, block) in self.blocks.iter().enumerate() {
            script += &format!("{block}\necho 'block {at} is done'\n");
        }
        let program = process::program().unwrap();
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(script).current_dir(self.folder()).env_clear();
        bash.env("PATH", path).env("HOME", self.folder()).env("KUBECONFIG", "/nonexistent");
        bash.envs(self.variables.iter().cloned());
        bash.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let output = timeout(PATIENCE, bash.output()).await.expect("it ends").unwrap();
        let (told, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let is_log = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "log");
        let files = std::fs::read_dir(self.folder()).unwrap().map(|entry| entry.unwrap().path());
        let logs: Vec<_> = files.filter(is_log).map(std::fs::read_to_string).collect();
        assert!(output.status.success(), "{told}\n{errors}\n{logs:#?}");
        let parts: Vec<_> = told.split(" is done\n").map(str::to_owned).collect();
        assert_eq!(parts.len(), self.blocks.len() + 1, "{told}");
        parts
    }
}

/// Ports that nobody gets who asks for any.
async fn free_ports<const N: usize>() -> [String; N] {
    loop {
        let first = fastrand::u16(20_000..32_000);
        let ports = std::array::from_fn(|at| first + u16::try_from(at).unwrap());
        let bound = join_all(ports.map(|port| TcpListener::bind(("127.0.0.1", port)))).await;
        if bound.iter().all(Result::is_ok) {
            return ports.map(|port| port.to_string());
        }
    }
}

/// A section of the page about clusters, on ports of its own.
async fn about_clusters(section: &str) -> Guide {
    let mut guide = Guide::of(CLUSTERS, section);
    // Others may use the ports that the page names, and only the defaults have no flag there.
    let [http, grpc, executor] = free_ports().await;
    for (port, free) in [("8080", &http), ("50051", &grpc), ("50052", &executor)] {
        guide.replace(port, free);
    }
    guide.set("SLEUTH_HTTP", format!("127.0.0.1:{http}"));
    guide.set("SLEUTH_GRPC", format!("127.0.0.1:{grpc}"));
    guide.set("SLEUTH_AGENT", format!("http://127.0.0.1:{grpc}"));
    guide
}

#[tokio::test]
async fn two_clusters_answer_as_the_page_says() {
    let parts = about_clusters(TWO).await.run().await;
    assert!(parts[1].contains("eu") && parts[1].contains("us"), "{}", parts[1]);
    assert!(parts[3].contains(r#""cluster_id":"us""#), "{}", parts[3]);
    assert!(parts[4].contains("[us] began") && !parts[4].contains("[eu]"), "{}", parts[4]);
}

#[tokio::test]
async fn several_executors_answer_as_the_page_says() {
    let parts = about_clusters(SEVERAL).await.run().await;
    assert!(parts[0].contains("machine"), "{}", parts[0]);
    assert!(parts[1].contains(r#""analysis":"#), "{}", parts[1]);
}

#[test]
fn every_command_about_clusters_is_run() {
    let page = std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(CLUSTERS)).unwrap();
    let run = [TWO, SEVERAL].map(|section| Guide::of(CLUSTERS, section).blocks.len());
    assert_eq!(page.matches("```").count(), 2 * run.iter().sum::<usize>(), "{run:?}");
    assert!(run.iter().all(|blocks| *blocks > 0), "{run:?}");
}

#[tokio::test]
async fn one_agent_of_several_is_killed_as_the_page_says() {
    let Some(postgres) = Postgres::start().await.unwrap() else { return };
    let mut guide = Guide::of("README.md", "### Kill one agent of several");
    assert_eq!(guide.blocks.len(), 2, "{:?}", guide.blocks);
    let [http, listen, first, other] = free_ports().await;
    for (port, free) in [("8080", &http), ("50051", &first), ("50061", &other)] {
        guide.replace(port, free);
    }
    guide.replace("postgres://sleuth@localhost/sleuth", &postgres.database("guide").await.unwrap());
    guide.set("SLEUTH_HTTP", format!("127.0.0.1:{http}"));
    guide.set("SLEUTH_LISTEN", format!("127.0.0.1:{listen}"));
    guide.set("SLEUTH_EXECUTOR", format!("http://127.0.0.1:{listen}"));
    // A model that is slow enough to be killed over, on any machine.
    let model = ScriptedOpenAi::start().await.unwrap();
    let script = json!({ "rounds": 3, "say": "I look.", "answer": "It is well.", "latency_ms": 1500 });
    model.say_by_default(serde_json::from_value::<Script>(script).unwrap());
    let models = json!({ "gpt": { "model": "openai/gpt", "api_key": "none", "base_url": model.url() } });
    let list = guide.folder().join("models.yaml");
    std::fs::write(&list, models.to_string()).unwrap();
    guide.set("MODEL_LIST_FILE_LOCATION", list.display().to_string());

    let parts = guide.run().await;
    assert!(parts[1].contains("is taken over"), "{}", parts[1]);
    let events: Vec<_> = parts[1].lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(events.last(), Some(&"ai_answer_end"), "{events:?}");
    assert_eq!(events.iter().filter(|event| **event == "tool_calling_result").count(), 3, "{events:?}");
    let answer = guide.read("answer.txt");
    let ids: Vec<_> = answer.lines().filter(|line| line.starts_with("id: ")).collect();
    let once: HashSet<_> = ids.iter().collect();
    assert_eq!((ids.len(), once.len()), (events.len(), events.len()), "{answer}");
}
