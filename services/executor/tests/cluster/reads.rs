//! What an investigation reads, through the proxy as without it.

use executor::cluster::Writes;

use crate::bench::{POD, admin, directly, door, first_lines, run};

/// Commands whose output does not depend on the moment.
const SAME: &[&str] = &[
    "kubectl get pods -n orders -o name",
    "kubectl get pods -A -o custom-columns=N:.metadata.name,P:.status.phase --chunk-size=5",
    "kubectl get deploy,rs,svc -n orders -o yaml",
    "kubectl get events -A -o json --sort-by=.metadata.name | jq '.items|length'",
    "kubectl get nodes --show-labels --no-headers -o name",
    "kubectl get pods -A -l app=orders-api -o jsonpath='{.items[*].metadata.name}'",
    "kubectl get pods -n orders -o go-template='{{range .items}}{{.metadata.uid}} {{end}}'",
    "kubectl logs -n orders orders-db-0 --previous --tail=5",
    "kubectl logs -n orders orders-db-0 --all-containers --prefix --timestamps --tail=5",
    "kubectl top nodes",
    "kubectl top pods -A --containers",
    "kubectl api-resources --verbs=list -o name",
    "kubectl api-versions",
    "kubectl explain deployment.spec.strategy",
    "kubectl version -o json | jq .serverVersion",
    "kubectl rollout history deploy -n orders",
    "kubectl rollout status deploy/orders-api -n orders --watch=false",
    "kubectl auth can-i list pods -A",
    "kubectl auth can-i --list -n orders",
    "kubectl get --raw /readyz",
    "kubectl get --raw /api/v1/namespaces/orders/pods | jq '.items|length'",
    "kubectl get pods -n nowhere",
    "kubectl get pod -n orders no-such-pod",
    "kubectl get nonsense",
    "kubectl get apiservices,clusterroles -o name",
];

#[tokio::test]
async fn the_reads_of_an_investigation_say_what_they_say_without_the_proxy() {
    let Some(admin) = admin() else { return };
    let door = door(&admin, Writes::Refused);
    for command in SAME {
        let (through, beside) = tokio::join!(run(&door, command), directly(&admin, command, ""));
        assert_eq!(through.stdout, beside.stdout, "{command}: {through:?}");
        assert_eq!((through.ok, through.stderr), (beside.ok, beside.stderr), "{command}");
    }
}

#[tokio::test]
async fn what_changes_with_the_moment_works_too() {
    let Some(admin) = admin() else { return };
    let door = door(&admin, Writes::Refused);
    for (command, expected) in [
        ("kubectl get pods -A -o wide", "orders-db-0"),
        ("kubectl describe pod -n orders orders-db-0", "OOMKilled"),
        ("kubectl describe nodes", "Allocatable"),
        ("kubectl describe svc -n orders", "Endpoints"),
        ("kubectl events -n orders", "orders-db-0"),
        ("kubectl get events -n orders", "orders-db-0"),
        ("kubectl cluster-info", "is running at"),
        ("kubectl config get-contexts", "admin"),
    ] {
        let said = run(&door, command).await;
        assert!(said.ok && said.stdout.contains(expected), "{command}: {said:?}");
    }
}

#[tokio::test]
async fn a_watch_and_a_log_are_followed_as_they_happen() {
    let Some(admin) = admin() else { return };
    let door = door(&admin, Writes::Refused);
    for (command, count) in [
        ("kubectl get pods -n orders -w --output-watch-events -o name", 2),
        ("kubectl get pods -n orders --watch", 2),
        ("kubectl get --raw '/api/v1/namespaces/orders/pods?watch=true'", 1),
        ("kubectl logs -f -n orders orders-db-0 --tail=3", 3),
        (&format!("kubectl logs -f -n storefront {POD} --tail=2"), 2),
    ] {
        let lines = first_lines(&door, command, count).await;
        assert!(lines.iter().all(|line| !line.is_empty()), "{command}: {lines:?}");
    }
}
