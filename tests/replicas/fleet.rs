//! Gateways, agents and executors over one PostgreSQL, each a process of its own, and those who read through them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use grants::SigningKey;
use harness::{
    client::{self, Frame, Stream},
    link::Link,
    models::ScriptedOpenAi,
    postgres::Postgres,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough for a loaded machine and any number of takeovers; never waited for in a passing test.
pub(crate) const SOON: Duration = Duration::from_secs(180);
pub(crate) const TICK: Duration = Duration::from_millis(20);
/// The last events of a run and of a turn.
pub(crate) const RUN_ENDS: &str = "ai_answer_end";
pub(crate) const TURN_ENDS: &str = "session.idled";
const EXECUTORS: [&str; 2] = ["one", "other"];

/// Two of each.
pub(crate) struct Fleet {
    pub(crate) postgres: Postgres,
    pub(crate) agents: Vec<Sleuth>,
    pub(crate) gateways: Vec<Sleuth>,
    executors: Vec<Sleuth>,
    /// What leads to any of them.
    to_agents: Link,
    to_gateways: Link,
    settings: Settings,
}

/// What all of them know.
struct Settings {
    store: String,
    openai: ScriptedOpenAi,
    key: SigningKey,
    folder: TempDir,
}

/// What dies.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Victim {
    Gateway,
    Agent,
    Executor,
    Postgres,
}

impl Settings {
    async fn executor(&self, name: &str) -> Sleuth {
        let start = Start::new(["executor", "--listen", &format!("unix:{}", self.path(name).display())])
            .env("SLEUTH_EXECUTOR_STATE", self.path(&format!("{name}-state")))
            .env("SLEUTH_GRANT_KEYS", self.key.public().to_string())
            .env("SLEUTH_BASH_ALLOW", "tee -a");
        start.start().await.unwrap()
    }

    async fn agent(&self) -> Sleuth {
        let executors = EXECUTORS.map(|name| format!("unix:{}", self.path(name).display()));
        let start = Start::new(["agent", "--grpc", "127.0.0.1:0", "--executor", &executors.join(",")]);
        let list =
            format!("gpt:\n  model: openai/gpt-4.1\n  api_key: sk-test\n  base_url: {}\n", self.openai.url());
        start.env("SLEUTH_STORE", &self.store).models(&list).unwrap().start().await.unwrap()
    }

    /// A gateway in front of what a URL leads to.
    async fn gateway(&self, agent: &str) -> Sleuth {
        let start = Start::new(["gateway", "--http", "127.0.0.1:0", "--agent", agent]);
        start.env("SLEUTH_DATA_DIR", self.folder.path()).start().await.unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Fleet {
    /// `None` if the machine has no PostgreSQL.
    pub(crate) async fn start() -> Option<Self> {
        let postgres = Postgres::start().await.unwrap()?;
        let store = postgres.database("fleet").await.unwrap();
        let folder = TempDir::new().unwrap();
        let key = SigningKey::load_or_create(&folder.path().join("signing.key")).unwrap();
        let settings = Settings { store, openai: ScriptedOpenAi::start().await.unwrap(), key, folder };
        let (one, other) = tokio::join!(settings.executor(EXECUTORS[0]), settings.executor(EXECUTORS[1]));
        let agents = tokio::join!(settings.agent(), settings.agent());
        let (to_agents, to_gateways) = (Link::to([]).await.unwrap(), Link::to([]).await.unwrap());
        let agent = to_agents.url("");
        let gateways = tokio::join!(settings.gateway(&agent), settings.gateway(&agent));
        let fleet = Self {
            postgres,
            agents: vec![agents.0, agents.1],
            gateways: vec![gateways.0, gateways.1],
            executors: vec![one, other],
            to_agents,
            to_gateways,
            settings,
        };
        fleet.aim();
        Some(fleet)
    }

    fn aim(&self) {
        self.to_agents.aim(self.agents.iter().map(|agent| agent.address("grpc").unwrap()));
        self.to_gateways.aim(self.gateways.iter().map(|gateway| gateway.address("http").unwrap()));
    }

    /// Leads what comes from now on to one agent.
    pub(crate) fn prefer(&self, agent: usize) {
        self.to_agents.aim([self.agents[agent].address("grpc").unwrap()]);
    }

    /// A gateway of one agent alone.
    pub(crate) async fn gateway_of(&self, agent: usize) -> Sleuth {
        self.settings.gateway(&self.agents[agent].grpc().unwrap()).await
    }

    /// A URL at whichever gateway answers.
    pub(crate) fn url(&self, path: &str) -> String {
        self.to_gateways.url(path)
    }

    /// A file for commands to write to.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.settings.path(name)
    }

    /// Kills one without warning, and starts another in its place.
    pub(crate) async fn strike(&mut self, victim: Victim, which: usize) {
        match victim {
            Victim::Gateway => {
                self.gateways.remove(which).kill().await.unwrap();
                self.gateways.insert(which, self.settings.gateway(&self.to_agents.url("")).await);
            }
            Victim::Agent => {
                self.agents.remove(which).kill().await.unwrap();
                self.agents.insert(which, self.settings.agent().await);
            }
            Victim::Executor => {
                self.executors.remove(which).kill().await.unwrap();
                self.executors.insert(which, self.settings.executor(EXECUTORS[which]).await);
            }
            Victim::Postgres => {
                self.postgres.kill().await.unwrap();
                self.postgres.start_again().await.unwrap();
            }
        }
        self.aim();
    }

    /// Starts a run; its first reader leaves at once.
    pub(crate) async fn run(&self, script: &Value) -> String {
        let body = json!({ "ask": question(script), "stream": true });
        Stream::open(&self.url("/api/chat"), &body).await.unwrap().run_id().unwrap()
    }

    /// Starts a session with a turn.
    pub(crate) async fn session(&self, script: &Value) -> String {
        let id = create(&self.url("/api/v1/sessions"), &json!({})).await;
        say(&self.url(""), &id, script).await;
        id
    }
}

fn question(script: &Value) -> String {
    format!("look FAKE_LLM{script}")
}

/// Creates a session.
pub(crate) async fn create(url: &str, settings: &Value) -> String {
    let (status, session) = client::post(url, settings).await.unwrap();
    assert_eq!(status, 201, "{session}");
    session["id"].as_str().unwrap().to_owned()
}

/// Says something in a session.
pub(crate) async fn say(gateway: &str, session: &str, script: &Value) {
    let message = json!({ "message": { "content": [{ "type": "text", "text": question(script) }] } });
    let url = format!("{gateway}/api/v1/sessions/{session}/messages");
    let (status, posted) = client::post(&url, &message).await.unwrap();
    assert_eq!(status, 201, "{posted}");
}

/// A command that waits for a line in a file.
pub(crate) fn waits_for(file: &Path) -> Value {
    std::fs::write(file, "").unwrap();
    let command = format!("tail -f {} | grep -m 1 done", file.display());
    json!({ "name": "bash", "args": { "command": command, "suggested_prefixes": ["tail"] } })
}

/// Where the history of a run or a session is read, behind a frame.
pub(crate) enum Place<'a> {
    Run(&'a str),
    Session(&'a str),
}

impl Place<'_> {
    pub(crate) fn path(&self, behind: Option<&Frame>) -> String {
        match (self, behind) {
            (Self::Run(run), None) => format!("/api/runs/{run}/events"),
            (Self::Run(run), Some(frame)) => {
                let (_, after) = frame.id.rsplit_once(':').unwrap();
                format!("/api/runs/{run}/events?after={after}")
            }
            (Self::Session(session), None) => format!("/api/v1/sessions/{session}/sse?after_sequence=0"),
            (Self::Session(session), Some(frame)) => {
                format!("/api/v1/sessions/{session}/sse?since_id={}", frame.id)
            }
        }
    }

    fn end(&self) -> &'static str {
        match self {
            Self::Run(_) => RUN_ENDS,
            Self::Session(_) => TURN_ENDS,
        }
    }

    /// Reads the history to its end, however often its stream breaks.
    pub(crate) async fn read(&self, url: impl Fn(&str) -> String) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        let reading = async {
            while frames.last().is_none_or(|frame| frame.event != self.end()) {
                if let Ok(mut stream) = Stream::get(&url(&self.path(frames.last()))).await {
                    self.listen(&mut stream, &mut frames).await;
                }
                tokio::time::sleep(TICK).await;
            }
        };
        let read = tokio::time::timeout(SOON, reading).await;
        assert!(read.is_ok(), "it does not end: {frames:#?}");
        frames
    }

    /// Reads until the end, or until the stream breaks.
    pub(crate) async fn listen(&self, stream: &mut Stream, frames: &mut Vec<Frame>) {
        while let Ok(Some(mut frame)) = stream.next().await {
            assert_ne!(frame.event, "error", "{frame:?}");
            // The one part that is of the connection.
            if let Some(Value::Object(metadata)) = frame.data.get_mut("metadata") {
                metadata.remove("request_id");
            }
            // What has no id is about the connection.
            if !frame.id.is_empty() {
                frames.push(frame);
            }
            if frames.last().is_some_and(|frame| frame.event == self.end()) {
                return;
            }
        }
    }
}
