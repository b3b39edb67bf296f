//! What `deploy/` says about the program, checked by the program: image, chart, compose file, dashboard.
//!
//! `deploy/install` installs Helm's engine, the Kubernetes schemas and hadolint; without it most is left out.

#![cfg(test)]

#[path = "deploy/chart.rs"]
mod chart;
#[path = "deploy/cluster.rs"]
mod cluster;
#[path = "deploy/dialling.rs"]
mod dialling;
#[path = "deploy/image.rs"]
mod image;
#[path = "deploy/processes.rs"]
mod processes;
#[path = "deploy/telemetry.rs"]
mod telemetry;

use std::path::{Path, PathBuf};

use serde_json::Value;

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap()
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// The folder of the tools that `deploy/install` has installed, if it was run.
fn tools() -> Option<PathBuf> {
    let check = std::process::Command::new(file("tests/deploy/install")).arg("--check").output().unwrap();
    let there = harness::components::has("helm", check.status.success());
    there.then(|| PathBuf::from(String::from_utf8(check.stdout).unwrap().trim()))
}
