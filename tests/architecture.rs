//! The arrows between our crates: who may depend on whom.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Each crate and all of ours that it may depend on. What is not listed is forbidden.
const ALLOWED: &[(&str, &[&str])] = &[
    ("domain", &[]),
    ("wire", &["domain"]),
    ("runtime", &[]),
    ("store", &["domain", "wire"]),
    ("model", &["domain"]),
    ("triage", &["domain", "model"]),
    ("grants", &["wire"]),
    ("executor", &["domain", "grants", "runtime", "wire"]),
    ("accounts", &["domain", "runtime", "store", "wire"]),
    ("agent", &["domain", "model", "runtime", "store", "wire"]),
    ("gateway", &["domain", "grants", "runtime", "wire"]),
    (
        "sleuth",
        &[
            "accounts", "agent", "domain", "executor", "gateway", "grants", "model", "runtime", "store",
            "triage", "wire",
        ],
    ),
    ("harness", &[]),
];

/// What a crate must not have, even through others: `domain` is pure, and what would break the walls between
/// the services.
const NEVER: &[(&str, &[&str])] = &[
    ("domain", &["serde", "serde_json", "prost", "tonic", "tokio", "axum", "reqwest", "tracing"]),
    ("gateway", &["model", "store", "executor", "agent"]),
    // It has a network client, for MCP servers that its operator names; it has none of the services.
    ("executor", &["model", "store", "agent", "gateway"]),
    ("agent", &["executor", "gateway", "triage"]),
];

#[test]
fn crates_depend_only_on_what_they_may() {
    let metadata = MetadataCommand::new().no_deps().exec().unwrap();
    let ours: BTreeSet<_> = metadata.packages.iter().map(|package| package.name.to_string()).collect();
    let allowed: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    assert!(ours.iter().all(|name| allowed.contains_key(name.as_str())), "list every crate: {ours:?}");
    for package in &metadata.packages {
        let normal =
            package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
        for dependency in normal.filter(|dependency| ours.contains(&dependency.name)) {
            let may = allowed[package.name.as_str()].contains(&dependency.name.as_str());
            assert!(may, "{} must not depend on {}", package.name, dependency.name);
        }
    }
}

#[test]
fn walls_hold_through_the_whole_graph() {
    let metadata = MetadataCommand::new().exec().unwrap();
    let names: BTreeMap<_, _> =
        metadata.packages.iter().map(|package| (&package.id, package.name.to_string())).collect();
    let resolve = metadata.resolve.as_ref().unwrap();
    let normal: BTreeMap<_, Vec<_>> = resolve
        .nodes
        .iter()
        .map(|node| {
            let is_normal = |dep: &&cargo_metadata::NodeDep| {
                dep.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal)
            };
            (&node.id, node.deps.iter().filter(is_normal).map(|dep| &dep.pkg).collect())
        })
        .collect();
    for (name, forbidden) in NEVER {
        let root = metadata.packages.iter().find(|package| package.name == *name).unwrap();
        let mut seen = BTreeSet::from([&root.id]);
        let mut todo = vec![&root.id];
        while let Some(id) = todo.pop() {
            for next in &normal[id] {
                assert!(!forbidden.contains(&names[next].as_str()), "{name} reaches {}", names[next]);
                if seen.insert(next) {
                    todo.push(next);
                }
            }
        }
    }
}
