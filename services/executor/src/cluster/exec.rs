//! Exec plugins: programs of the operator that print a credential. They run beside the commands, never in them, and
//! what they print is kept until it expires.

use std::{path::Path, process::Stdio, sync::Arc, time::Duration};

use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::AsyncReadExt as _,
    process::{Child, Command},
    sync::Mutex,
    time::timeout,
};

use super::{
    credential::{self, Identity},
    kubeconfig::{Cluster, Exec},
};

/// How long a plugin may take.
const TIME: Duration = Duration::from_secs(60);
/// The most that it may print.
const OUTPUT_BYTES: u64 = 1 << 20;
/// A credential that expires sooner than that is not used again.
const MARGIN: SignedDuration = SignedDuration::from_secs(30);
const VERSIONS: [&str; 2] = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

/// Why a plugin gave no credential. What it printed is in none of these.
#[derive(Debug, thiserror::Error)]
#[error("the exec plugin `{command}` {problem}")]
pub(super) struct Error {
    command: String,
    problem: String,
}

/// A plugin, and what it last printed.
#[derive(Debug)]
pub(super) struct Plugin {
    exec: Exec,
    /// What it is told.
    info: String,
    /// Locked while it runs, so that it runs once for all who wait.
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug)]
struct Kept {
    identity: Identity,
    expires: Option<Timestamp>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Printed {
    api_version: String,
    status: Option<Status>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: Option<SecretString>,
    client_certificate_data: Option<String>,
    client_key_data: Option<SecretString>,
    expiration_timestamp: Option<Timestamp>,
}

impl Plugin {
    pub(super) fn new(exec: &Exec, cluster: &Cluster) -> Result<Self, Error> {
        let fail = |problem: &str| Err(Error::of(&exec.command, problem));
        if !VERSIONS.contains(&exec.api_version.as_str()) {
            return fail("speaks a version that is not supported; v1 and v1beta1 are");
        }
        if exec.interactive_mode.as_deref() == Some("Always") {
            return fail("wants a terminal, which an executor has not");
        }
        let mut spec = json!({"interactive": false});
        if exec.provide_cluster_info {
            spec["cluster"] = about(cluster);
        }
        let info = json!({"apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec});
        Ok(Self { exec: exec.clone(), info: info.to_string(), kept: Mutex::default() })
    }

    /// What it printed last, or prints now.
    pub(super) async fn identity(&self) -> Result<Identity, Error> {
        let mut kept = self.kept.lock().await;
        let fresh = |kept: &&Kept| kept.expires.is_none_or(|at| Timestamp::now() + MARGIN < at);
        if let Some(kept) = kept.as_ref().filter(fresh) {
            return Ok(kept.identity.clone());
        }
        let new = self.run().await.map_err(|problem| Error::of(&self.exec.command, problem))?;
        Ok(kept.insert(new).identity.clone())
    }

    /// Has it run again at the next use.
    pub(super) async fn forget(&self) {
        *self.kept.lock().await = None;
    }

    async fn run(&self) -> Result<Kept, String> {
        let mut child = Command::new(&self.exec.command)
            .args(self.exec.args.iter().flatten())
            .envs(self.exec.env.iter().flatten().map(|own| (&own.name, own.value.expose_secret())))
            .env("KUBERNETES_EXEC_INFO", &self.info)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("could not be started: {error}"))?;
        let mut group = Group(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw));
        let late = |_| format!("did not end in {} s", TIME.as_secs());
        let printed = timeout(TIME, output(&mut child)).await.map_err(late)??;
        group.0 = None;
        read(&printed, &self.exec.api_version)
    }
}

/// Kills a plugin that has not ended, with what it started.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // It may have ended meanwhile.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

async fn output(child: &mut Child) -> Result<Vec<u8>, String> {
    let mut printed = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        let read = stdout.take(OUTPUT_BYTES).read_to_end(&mut printed).await;
        read.map_err(|error| format!("could not be read: {error}"))?;
    }
    let status = child.wait().await.map_err(|error| format!("was lost: {error}"))?;
    if status.success() { Ok(printed) } else { Err(format!("failed: {status}")) }
}

fn read(printed: &[u8], version: &str) -> Result<Kept, String> {
    // The parser's message would quote a token.
    let printed: Printed =
        serde_json::from_slice(printed).map_err(|_| "did not print an ExecCredential".to_owned())?;
    if printed.api_version != version {
        return Err("answered in another version than it was asked in".to_owned());
    }
    let status = printed.status.ok_or("printed no credential")?;
    let token = status.token.as_ref().map(SecretString::expose_secret).filter(|token| !token.is_empty());
    let invalid = |error: credential::Error| format!("printed what cannot be used: {error}");
    let certificate = match (&status.client_certificate_data, &status.client_key_data) {
        (Some(chain), Some(key)) => Some(Arc::new(
            credential::joined(chain.as_bytes(), key.expose_secret().as_bytes()).map_err(invalid)?,
        )),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => return Err("printed half a client certificate".to_owned()),
    };
    let authorization: Option<HeaderValue> = token.map(credential::bearer).transpose().map_err(invalid)?;
    if authorization.is_none() && certificate.is_none() {
        return Err("printed no credential".to_owned());
    }
    Ok(Kept { identity: Identity { authorization, certificate }, expires: status.expiration_timestamp })
}

/// What a plugin may be told of its cluster.
fn about(cluster: &Cluster) -> Value {
    let mut about = json!({"server": cluster.server});
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            about[name] = value;
        }
    };
    add("certificate-authority-data", cluster.certificate_authority_data.as_deref().map(Value::from));
    add("insecure-skip-tls-verify", cluster.insecure_skip_tls_verify.then_some(true.into()));
    add("tls-server-name", cluster.tls_server_name.as_deref().map(Value::from));
    add("proxy-url", cluster.proxy_url.as_deref().map(Value::from));
    add("config", cluster.exec_config().cloned());
    about
}

impl Error {
    fn of(command: &Path, problem: impl Into<String>) -> Self {
        let name = command.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { command: name, problem: problem.into() }
    }
}
