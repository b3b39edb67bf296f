//! The chart before a real API server: what it takes, what it lets the chart's identity do, what an upgrade keeps.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use harness::components::{cluster, has_program};
use serde_json::{Value, json};

use super::chart::{Chart, all_values, of_kind};

/// The administrator's kubeconfig of the test cluster, if there is one.
fn admin() -> Option<PathBuf> {
    let viewer = cluster()?;
    has_program("kubectl").then(|| viewer.with_file_name("admin.kubeconfig"))
}

fn kubectl(kubeconfig: &Path, arguments: &[&str], input: &Value) -> Output {
    let mut process = Command::new("kubectl")
        .env("KUBECONFIG", kubeconfig)
        .args(["--request-timeout", "30s"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    process.wait_with_output().unwrap()
}

fn list(objects: &[Value]) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "items": objects })
}

/// The objects as the test cluster, which is older than the chart's oldest, can take them.
fn for_an_older_server(mut objects: Vec<Value>) -> Vec<Value> {
    // It has neither the kind of the Prometheus operator nor autoscaling/v2; schemas are checked when rendering.
    objects.retain(|object| object["kind"] != "ServiceMonitor" && object["apiVersion"] != "autoscaling/v2");
    for object in &mut objects {
        if object["apiVersion"] == "policy/v1" {
            object["apiVersion"] = "policy/v1beta1".into();
        }
        let container = object.pointer_mut("/spec/template/spec/containers/0").and_then(Value::as_object_mut);
        for probe in container.into_iter().flatten().filter_map(|(_, value)| value.as_object_mut()) {
            if let Some(grpc) = probe.remove("grpc") {
                probe.insert("tcpSocket".to_owned(), grpc);
            }
        }
    }
    objects
}

#[test]
fn an_api_server_takes_all_objects() {
    let (Some(chart), Some(admin)) = (Chart::new(), admin()) else { return };
    for values in all_values() {
        let objects = for_an_older_server(chart.render(&values, None).unwrap());
        let output = kubectl(&admin, &["apply", "--dry-run=server", "-f", "-"], &list(&objects));
        assert!(output.status.success(), "{}\n{values}", String::from_utf8_lossy(&output.stderr));
        let taken = String::from_utf8(output.stdout).unwrap();
        assert_eq!(taken.matches("(server dry run)").count(), objects.len(), "{taken}");
    }
}

#[test]
fn the_identity_reads_and_does_nothing_else() {
    let (Some(chart), Some(admin)) = (Chart::new(), admin()) else { return };
    let values = json!({ "fullnameOverride": "identity-test" });
    let mut objects = chart.render(&values, None).unwrap();
    objects.retain(|object| object["apiVersion"] == "rbac.authorization.k8s.io/v1");
    assert_eq!(objects.len(), 2);
    let output = kubectl(&admin, &["apply", "-f", "-"], &list(&objects));
    assert!(output.status.success(), "{output:?}");

    let may = |question: &str| {
        let user = "--as=system:serviceaccount:default:identity-test";
        let arguments: Vec<_> =
            ["auth", "can-i", "--all-namespaces", user].into_iter().chain(question.split(' ')).collect();
        kubectl(&admin, &arguments, &Value::Null).status.success()
    };
    let reads = [
        "list pods",
        "get pods --subresource=log",
        "watch events",
        "get configmaps",
        "list nodes",
        "list deployments.apps",
        "list pods.metrics.k8s.io",
        "get ingresses.networking.k8s.io",
        "list customresourcedefinitions.apiextensions.k8s.io",
    ];
    let others = [
        "get secrets",
        "list secrets",
        "delete pods",
        "create pods",
        "patch deployments.apps",
        "get pods --subresource=exec",
        "create pods --subresource=exec",
        "get pods --subresource=proxy",
        "get nodes --subresource=proxy",
        "get services --subresource=proxy",
        "create pods --subresource=eviction",
        "create serviceaccounts --subresource=token",
        "impersonate users",
    ];
    let refused: Vec<_> = reads.into_iter().filter(|question| !may(question)).collect();
    let granted: Vec<_> = others.into_iter().filter(|question| may(question)).collect();
    kubectl(&admin, &["delete", "-f", "-"], &list(&objects));
    assert_eq!((refused, granted), (vec![], vec![]));
}

#[test]
fn a_generated_key_outlives_upgrades() {
    let (Some(chart), Some(admin)) = (Chart::new(), admin()) else { return };
    let values = json!({ "fullnameOverride": "upgrade-test" });
    let key = || {
        let objects = chart.render(&values, Some(&admin)).unwrap();
        of_kind(&objects, "Secret")[0].clone()
    };
    let first = key();
    assert_ne!(first["data"]["api-key"], key()["data"]["api-key"], "keys are random");
    let created = kubectl(&admin, &["apply", "-f", "-"], &first);
    assert!(created.status.success(), "{created:?}");
    let next = key();
    kubectl(&admin, &["delete", "-f", "-"], &first);
    assert_eq!(next["data"], first["data"]);
}
