//! The commands of `docs/clusters.md`, run as they stand there.

#![cfg(test)]

use std::{path::PathBuf, process::Stdio, time::Duration};

use harness::process;
use tokio::{net::TcpListener, process::Command, time::timeout};

const PATIENCE: Duration = Duration::from_secs(300);

/// The commands of a section of the page.
fn commands(section: &str) -> Vec<String> {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/clusters.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once(section).expect("the section is there");
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

async fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port().to_string()
}

#[tokio::test]
async fn two_clusters_answer_as_the_page_says() {
    let blocks = commands("## Two clusters in ten minutes");
    assert!(blocks.len() >= 5, "{blocks:?}");
    let folder = tempfile::tempdir().unwrap();
    let (http, grpc) = (free_port().await, free_port().await);
    // Others may use the ports that the page names, and only the defaults have no flag there.
    let mut script = "set -eu -o pipefail\ntrap 'kill $(jobs -p)' EXIT\n".to_owned();
    for (at, block) in blocks.iter().enumerate() {
        script += &block.replace("8080", &http).replace("50051", &grpc);
        script += &format!("echo 'block {at} is done'\n");
    }
    let program = process::program().unwrap();
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(script).current_dir(folder.path()).env_clear();
    bash.env("PATH", path).env("HOME", folder.path()).env("KUBECONFIG", "/nonexistent");
    bash.env("SLEUTH_HTTP", format!("127.0.0.1:{http}")).env("SLEUTH_GRPC", format!("127.0.0.1:{grpc}"));
    bash.env("SLEUTH_AGENT", format!("http://127.0.0.1:{grpc}"));
    bash.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = timeout(PATIENCE, bash.output()).await.expect("it ends").unwrap();
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let logs = ["agent", "gateway", "eu", "us"]
        .map(|name| std::fs::read_to_string(folder.path().join(format!("{name}.log"))).unwrap_or_default());
    assert!(output.status.success(), "{told}\n{errors}\n{logs:?}");
    let parts: Vec<_> = told.split(" is done\n").collect();
    assert_eq!(parts.len(), blocks.len() + 1, "{told}");
    assert!(parts[1].contains("eu") && parts[1].contains("us"), "{}", parts[1]);
    assert!(parts[3].contains(r#""cluster_id":"us""#), "{}", parts[3]);
    assert!(parts[4].contains("[us] began") && !parts[4].contains("[eu]"), "{}", parts[4]);
}
