//! Network namespaces: executors that live in one can dial out of it, and nobody can dial in.

use std::{net::SocketAddr, path::Path, process::Stdio};

use harness::process;
use tokio::process::{Child, Command};

/// A network namespace with a way out to one address of this machine.
pub(crate) struct Namespace {
    name: String,
    device: String,
    /// The end of the way, on this machine.
    pub(crate) gateway: String,
}

async fn ip(arguments: &str) -> bool {
    let status = Command::new("ip").args(arguments.split(' ')).stderr(Stdio::null()).status().await;
    status.is_ok_and(|status| status.success())
}

impl Namespace {
    /// `None` where none can be made.
    pub(crate) async fn new(number: u32) -> Option<Self> {
        let id = std::process::id();
        let own = Self {
            name: format!("sleuth-{id}-{number}"),
            device: format!("sl{}x{number}", id % 100_000),
            gateway: format!("198.{}.{}.1", 18 + number, id % 250),
        };
        let Self { name, device, gateway } = &own;
        let inside = format!("{}2", gateway.trim_end_matches('1'));
        let steps = [
            format!("netns add {name}"),
            format!("link add {device} type veth peer name {device}p"),
            format!("link set {device}p netns {name}"),
            format!("addr add {gateway}/30 dev {device}"),
            format!("link set {device} up"),
            format!("-n {name} addr add {inside}/30 dev {device}p"),
            format!("-n {name} link set lo up"),
            format!("-n {name} link set {device}p up"),
            format!("-n {name} route add default via {gateway}"),
        ];
        for step in &steps {
            if !ip(step).await {
                return None;
            }
        }
        Some(own)
    }

    /// Cuts the way out, or mends it.
    pub(crate) async fn set(&self, state: &str) {
        assert!(ip(&format!("-n {} link set {}p {state}", self.name, self.device)).await);
        if state == "up" {
            ip(&format!("-n {} route add default via {}", self.name, self.gateway)).await;
        }
    }

    /// What listens in there.
    pub(crate) async fn listeners(&self) -> String {
        let listed = Command::new("ip").args(["netns", "exec", &self.name, "ss", "-Hlntu"]).output().await;
        String::from_utf8(listed.unwrap().stdout).unwrap()
    }

    /// An executor in there, which dials an address.
    pub(crate) fn executor(
        &self,
        folder: &Path,
        to: SocketAddr,
        name: &str,
        token: &str,
        kubeconfig: &Path,
    ) -> Child {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(process::program().unwrap()).args([
            "executor",
            "--connect",
            &format!("http://{to}"),
            "--cluster",
            name,
            "--name",
            "one",
        ]);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", folder);
        command.env("KUBECONFIG", kubeconfig).env("SLEUTH_JOIN_TOKEN", token);
        command.env("SLEUTH_EXECUTOR_STATE", folder.join(format!("state-{name}")));
        command
            .env("SLEUTH_EXECUTOR_PASS_ENV", "WHERE")
            .env("SLEUTH_BASH_ALLOW", "printenv,mktemp,sleep")
            .env("WHERE", format!("at-{name}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        command.spawn().unwrap()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let delete = |arguments: [&str; 3]| std::process::Command::new("ip").args(arguments).status();
        // What is not there any more need not be removed.
        let _ = delete(["link", "del", &self.device]);
        let _ = delete(["netns", "del", &self.name]);
    }
}
