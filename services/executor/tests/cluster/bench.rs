//! A command's place in front of the test cluster, and the administrator's behind it.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use executor::cluster::{Access, Clusters, Gate, Settings, Source, Writes};
use harness::components;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::Command,
};

/// How long one command may take on a busy machine.
const TIME: Duration = Duration::from_secs(60);

/// What a command printed.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) ok: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The administrator's kubeconfig of the test cluster, if there is one.
pub(crate) fn admin() -> Option<PathBuf> {
    let viewer = components::cluster()?;
    components::has_program("kubectl").then(|| viewer.with_file_name("admin.kubeconfig"))
}

/// What a command gets of the executor: a kubeconfig, for as long as this lives.
pub(crate) struct Door {
    directory: tempfile::TempDir,
    _gate: Gate,
}

impl Door {
    pub(crate) fn open(settings: Settings, access: Access) -> Self {
        Self::of(&Clusters::new(settings), access)
    }

    pub(crate) fn of(clusters: &Clusters, access: Access) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let pass = clusters.pass(access);
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = pass.kubeconfig(listener.local_addr().unwrap().port());
        std::fs::write(directory.path().join("kubeconfig"), kubeconfig).unwrap();
        Self { directory, _gate: pass.serve(listener).unwrap() }
    }

    pub(crate) fn kubeconfig(&self) -> Value {
        let text = std::fs::read_to_string(self.directory.path().join("kubeconfig")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn environment(&self) -> [(&'static str, PathBuf); 2] {
        let at = |name| self.directory.path().join(name);
        [("KUBECONFIG", at("kubeconfig")), ("KUBECACHEDIR", at("cache"))]
    }
}

/// A command that may do this, with the administrator's credential behind it: what it does not change, it was kept
/// from changing.
pub(crate) fn door(kubeconfig: &Path, writes: Writes) -> Door {
    let settings = Settings { source: Source::files([kubeconfig.to_owned()]), ..Settings::default() };
    Door::open(settings, Access { writes, ..Access::default() })
}

/// Runs a shell command with what the door gives it, and nothing else that leads to a cluster.
pub(crate) async fn run(door: &Door, command: &str) -> Said {
    finish(shell(command).envs(door.environment()), "").await
}

/// The first lines of a command that does not end; it is ended then.
pub(crate) async fn first_lines(door: &Door, command: &str, count: usize) -> Vec<String> {
    let mut child = shell(&format!("exec {command}")).envs(door.environment()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let read = async {
        let mut read = Vec::new();
        while read.len() < count {
            read.push(lines.next_line().await.unwrap().expect("more lines"));
        }
        read
    };
    tokio::time::timeout(TIME, read).await.expect("the lines")
}

/// Runs kubectl beside the proxy.
pub(crate) async fn directly(admin: &Path, command: &str, input: &str) -> Said {
    finish(shell(command).env("KUBECONFIG", admin), input).await
}

pub(crate) fn shell(command: &str) -> Command {
    let mut shell = Command::new("bash");
    let path = std::env::var_os("PATH").unwrap_or_default();
    shell.args(["-c", command]).env_clear().env("PATH", path).env("HOME", env!("CARGO_TARGET_TMPDIR"));
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    shell
}

async fn finish(command: &mut Command, input: &str) -> Said {
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let output = tokio::time::timeout(TIME, child.wait_with_output()).await.expect("an end").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Said { ok: output.status.success(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Puts objects into a namespace of a test's own.
pub(crate) async fn create(admin: &Path, namespace: &str, objects: &[Value]) {
    // An earlier call may have made it.
    directly(admin, &format!("kubectl create namespace {namespace}"), "").await;
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let said = directly(admin, &format!("kubectl apply -n {namespace} -f -"), &list.to_string()).await;
    assert!(said.ok, "{said:?}");
}

/// A pod of the seeds that runs.
pub(crate) const POD: &str =
    "$(kubectl get pods -n storefront -o name --field-selector status.phase=Running | head -n 1)";
