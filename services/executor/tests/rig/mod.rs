//! An executor behind a real socket, and the questions that tests ask it.

use std::{io::Write as _, path::PathBuf, time::Duration};

use executor::{Config, Executor};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{
    Status, Streaming,
    transport::{Channel, Server},
};
use wire::executor::{
    ExecuteEvent, ExecuteRequest, Finished, execute_event::Kind, tool_executor_client::ToolExecutorClient,
};

/// An executor that serves until it is dropped.
pub(crate) struct Rig {
    pub(crate) client: ToolExecutorClient<Channel>,
    pub(crate) executor: Executor,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The usual settings, with the launcher that was built for the tests.
pub(crate) fn config() -> Config {
    let mut config = Config::from_env(&|name| std::env::var(name).ok()).unwrap();
    config.launcher = env!("CARGO_BIN_EXE_sleuth-launch").into();
    config.state = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("state").join(unique());
    config
}

impl Rig {
    pub(crate) async fn new() -> Self {
        Self::with(config()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let executor = Executor::build(config).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let serving = Server::builder()
            .add_service(executor.service())
            .serve_with_incoming(TcpListenerStream::new(listener));
        let server = tokio::spawn(async move { serving.await.unwrap() });
        let client = ToolExecutorClient::connect(address).await.unwrap();
        Self { client, executor, server }
    }

    pub(crate) async fn execute(
        &mut self,
        request: ExecuteRequest,
    ) -> Result<Streaming<ExecuteEvent>, Status> {
        Ok(self.client.execute(request).await?.into_inner())
    }

    /// Runs a tool to its end.
    pub(crate) async fn run(&mut self, tool: &str, arguments: &serde_json::Value) -> Finished {
        let events = self.execute(request(&unique(), tool, arguments)).await.unwrap();
        finished(&rest(events).await)
    }

    pub(crate) async fn bash(&mut self, command: &str) -> Finished {
        self.run("bash", &serde_json::json!({"command": command})).await
    }
}

pub(crate) fn request(id: &str, tool: &str, arguments: &serde_json::Value) -> ExecuteRequest {
    ExecuteRequest {
        execution_id: id.to_owned(),
        tool: tool.to_owned(),
        arguments_json: arguments.to_string(),
        ..ExecuteRequest::default()
    }
}

pub(crate) fn bash(id: &str, command: &str) -> ExecuteRequest {
    request(id, "bash", &serde_json::json!({"command": command}))
}

/// An id that no other test uses.
pub(crate) fn unique() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// All events to the end, which must come.
pub(crate) async fn rest(mut events: Streaming<ExecuteEvent>) -> Vec<ExecuteEvent> {
    let collect = async {
        let mut all = Vec::new();
        while let Some(event) = events.message().await.unwrap() {
            all.push(event);
        }
        all
    };
    tokio::time::timeout(Duration::from_secs(60), collect).await.expect("an end")
}

/// Waits for the first event that `wanted` picks.
pub(crate) async fn until<T>(
    events: &mut Streaming<ExecuteEvent>,
    mut wanted: impl FnMut(&ExecuteEvent) -> Option<T>,
) -> T {
    let search = async {
        loop {
            let event = events.message().await.unwrap().expect("more events");
            if let Some(found) = wanted(&event) {
                return found;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), search).await.expect("the event")
}

/// The last event, which must be the only end.
pub(crate) fn finished(events: &[ExecuteEvent]) -> Finished {
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            Some(Kind::Finished(finished)) => Some(finished.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ends.len(), 1, "one end in {events:?}");
    assert!(matches!(events.last().unwrap().kind, Some(Kind::Finished(_))));
    ends[0].clone()
}

/// The processes whose command line contains `mark`.
pub(crate) fn processes_with(mark: &str) -> Vec<String> {
    let commands = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&command).replace('\0', " "))
    });
    commands.filter(|command| command.contains(mark)).collect()
}

/// Whether a program is there.
pub(crate) fn has(component: &str) -> bool {
    is_there(component, std::process::Command::new(component).arg("--help").output().is_ok())
}

/// Whether a test can run; says so, also to whoever collects what was left out.
pub(crate) fn is_there(component: &str, found: bool) -> bool {
    if !found {
        let required = std::env::var("SLEUTH_TEST_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|own| own.trim() == component),
            "{component} is required and missing"
        );
        println!("skipped: {component} is missing");
        if let Ok(path) = std::env::var("SLEUTH_TEST_SKIPS") {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
            writeln!(file, "executor: {component} is missing").unwrap();
        }
    }
    found
}
