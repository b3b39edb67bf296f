//! Ways to make kubectl or curl write. None of them reaches the API server.

use std::path::Path;

use executor::cluster::Writes;
use serde_json::json;

use crate::bench::{Door, POD, admin, create, directly, door, run};

/// Shell commands that change the namespace `$N`, in which the objects are called `victim`. `$P` is the proxy with its
/// token `$T`, `$S` the API server.
const WRITES: &[&str] = &[
    "kubectl delete configmap victim -n $N",
    "kubectl delete deploy victim -n $N --wait=false",
    "kubectl delete configmaps --all -n $N",
    "kubectl delete --raw /api/v1/namespaces/$N/configmaps/victim",
    "kubectl scale deploy victim -n $N --replicas=7",
    "kubectl label configmap victim -n $N a=b",
    "kubectl annotate deploy victim -n $N a=b",
    "kubectl patch configmap victim -n $N -p '{\"data\":{\"a\":\"b\"}}'",
    "kubectl patch deploy victim -n $N --type=json -p '[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":9}]'",
    "kubectl patch deploy victim -n $N --subresource=status --type=merge -p '{\"status\":{\"replicas\":3}}'",
    "kubectl set image deploy/victim -n $N '*=evil'",
    "kubectl set env deploy/victim -n $N A=B",
    "kubectl set resources deploy/victim -n $N --limits=cpu=1",
    "kubectl set serviceaccount deploy victim -n $N evil",
    "kubectl rollout restart deploy/victim -n $N",
    "kubectl rollout pause deploy/victim -n $N",
    "kubectl autoscale deploy victim -n $N --max=3",
    "kubectl expose deploy victim -n $N --port=80 --name=exposed",
    "kubectl run evil -n $N --image=evil",
    "kubectl create configmap evil -n $N --from-literal=a=b",
    "kubectl create job evil -n $N --image=evil",
    "echo '{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"evil\"}}' | kubectl apply -n $N -f -",
    "echo '{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"victim\"}}' | kubectl apply --server-side --force-conflicts -n $N -f -",
    "echo '{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"victim\"}}' | kubectl replace -n $N -f -",
    "echo '{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"evil\"}}' | kubectl create --raw /api/v1/namespaces/$N/configmaps -f -",
    "EDITOR='sed -i s/old/new/' kubectl edit configmap victim -n $N",
    "curl -sS -x $P -X DELETE $S/api/v1/namespaces/$N/configmaps/victim",
    "curl -sS -x $P -X DELETE $S/api/v1/namespaces/$N/configmaps",
    "curl -sS -x $P -X DELETE -H 'X-HTTP-Method-Override: GET' $S/api/v1/namespaces/$N/configmaps/victim",
    "curl -sS -x $P -X PATCH -H 'Content-Type: application/merge-patch+json' -d '{\"data\":{\"a\":\"b\"}}' $S/api/v1/namespaces/$N/%63onfigmaps/victim",
    "curl -sS -x $P -d '{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"evil\"}}' -H 'Content-Type: application/json' $S/api/v1/namespaces/$N/configmaps",
    "curl -sS -p -x $P -X DELETE $S/api/v1/namespaces/$N/configmaps/victim",
];

/// Shell commands that would change more than a test may, open a channel, or ask in another's name. `POD` is a pod.
const BEYOND: &[&str] = &[
    "kubectl create namespace evil",
    "kubectl create clusterrolebinding evil --clusterrole=cluster-admin --user=viewer",
    "kubectl create token victim -n $N",
    "kubectl taint node $(kubectl get nodes -o name | head -n 1 | cut -d/ -f2) evil=true:NoSchedule",
    "kubectl cordon $(kubectl get nodes -o name | head -n 1)",
    "kubectl drain $(kubectl get nodes -o name | head -n 1) --force --ignore-daemonsets --delete-emptydir-data --timeout=1s",
    "kubectl exec -n storefront POD -- id",
    "kubectl attach -n storefront POD",
    "kubectl cp -n storefront /etc/hostname $(basename POD):/tmp/x",
    "timeout 20 kubectl port-forward -n storefront POD 0:80",
    "kubectl debug -n storefront POD --image=evil",
    "kubectl get pods -n $N --as=system:admin",
    "kubectl auth can-i '*' '*' --as=system:admin",
    "kubectl auth reconcile -f <(echo '{\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"kind\":\"ClusterRole\",\"metadata\":{\"name\":\"evil\"}}')",
    "kubectl get --raw /api/v1/namespaces/storefront/$(echo POD | sed s,pod/,pods/,)/proxy/",
    "kubectl get --raw /api/v1/nodes/$(kubectl get nodes -o name | head -n 1 | cut -d/ -f2)/proxy/run/a/b/c",
    "curl -sS -x $P -d '{\"metadata\":{\"name\":\"evil\"}}' -H 'Content-Type: application/json' $S/api/v1/namespaces",
    "curl -sS -x $P -N -H 'Connection: Upgrade' -H 'Upgrade: websocket' $S/api/v1/namespaces/storefront/$(echo POD | sed s,pod/,pods/,)/exec?command=id",
    "curl -sS -x $P -H 'Impersonate-User: admin' $S/api/v1/namespaces/$N/configmaps",
];

/// Refused before anyone asks what they would do.
const NEVER: &[&str] = &[
    "curl -sS -x $P -X DELETE --path-as-is $S/version/../api/v1/namespaces/$N/configmaps/victim",
    "curl -sS --path-as-is -x $P -X DELETE $S//api/v1/namespaces/$N/configmaps/victim",
    "curl -sS --path-as-is -x $P -X GET $S/api/v1/namespaces/$N/configmaps/%2e%2e/secrets",
    "curl -sS -x $P -X DELETE http://example.invalid/api/v1/namespaces/$N/configmaps/victim",
    "curl -sS -x http://0:wrong@${P#*@} -X DELETE $S/api/v1/namespaces/$N/configmaps/victim",
    "curl -sS -x http://${P#*@} $S/api/v1/namespaces/$N/configmaps/victim",
    "curl -sS -X DELETE -H \"Authorization: Bearer $T\" http://${P#*@}/api/v1/namespaces/$N/configmaps/victim",
    "curl -sS -p -x $P http://example.invalid:80/",
];

async fn set_up(admin: &Path, own: &str) {
    let meta = json!({"name": "victim"});
    let template = json!({"metadata": {"labels": {"app": "victim"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    create(
        admin,
        own,
        &[
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"key": "old"}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {
                "replicas": 0, "selector": {"matchLabels": {"app": "victim"}}, "template": template,
            }}),
        ],
    )
    .await;
}

/// What is in the namespace, as the API server itself tells it.
async fn namespace(admin: &Path, own: &str) -> String {
    let kinds = "configmaps,deployments,serviceaccounts,services,pods,jobs,hpa,secrets,replicasets";
    let shown = "custom-columns=K:.kind,N:.metadata.name,V:.metadata.resourceVersion";
    let said = directly(admin, &format!("kubectl get {kinds} -n {own} -o {shown}"), "").await;
    assert!(said.ok, "{said:?}");
    said.stdout
}

/// What else a write could touch.
async fn elsewhere(admin: &Path) -> String {
    let command = "set -e; kubectl get pods -n storefront -o yaml; kubectl get ns,csr,clusterroles -o name; \
                   kubectl get nodes -o custom-columns=N:.metadata.name,S:.spec";
    let said = directly(admin, command, "").await;
    assert!(said.ok, "{said:?}");
    said.stdout
}

fn script(door: &Door, own: &str, command: &str) -> String {
    let config = door.kubeconfig();
    let cluster = &config["clusters"][0]["cluster"];
    let (server, proxy) = (cluster["server"].as_str().unwrap(), cluster["proxy-url"].as_str().unwrap());
    let token = proxy.split([':', '@']).nth(2).unwrap();
    // For curl's own name the API server indents its answers, and this old one crashes over some of them.
    format!(
        "curl() {{ command curl -A test \"$@\"; }}; N={own}; P={proxy}; S={}; T={token}; {}",
        server.trim_end_matches('/'),
        command.replace("POD", POD)
    )
}

async fn tell(door: &Door, own: &str, command: &str) -> String {
    let said = run(door, &script(door, own, command)).await;
    said.stdout + &said.stderr
}

#[tokio::test]
async fn no_way_to_write_changes_the_cluster() {
    let Some(admin) = admin() else { return };
    let own = "proxy-refusing";
    set_up(&admin, own).await;
    let door = door(&admin, Writes::Refused);
    let before = (namespace(&admin, own).await, elsewhere(&admin).await);
    let mut wrong = Vec::new();
    for command in WRITES.iter().chain(BEYOND) {
        let told = tell(&door, own, command).await;
        if !(told.contains("Sleuth refused to") && told.contains("A person must approve")) {
            wrong.push(format!("{command}: {told}"));
        }
    }
    for command in NEVER {
        let told = tell(&door, own, command).await;
        if !(told.contains("\"Failure\"") || told.contains("CONNECT")) {
            wrong.push(format!("{command}: {told}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(before == (namespace(&admin, own).await, elsewhere(&admin).await), "the cluster has changed");
}

#[tokio::test]
async fn each_way_works_where_a_person_has_approved_it() {
    let Some(admin) = admin() else { return };
    let own = "proxy-granting";
    let door = door(&admin, Writes::Granted);
    let mut wrong = Vec::new();
    for command in WRITES {
        set_up(&admin, own).await;
        let before = namespace(&admin, own).await;
        let told = tell(&door, own, command).await;
        if before == namespace(&admin, own).await {
            wrong.push(format!("{command}: {told}"));
        }
        let clean = "kubectl delete svc,pods,hpa,jobs,configmaps,deployments --all --wait=false -n";
        directly(&admin, &format!("{clean} {own}"), "").await;
    }
    assert!(wrong.is_empty(), "these change nothing even when they may: {}", wrong.join("\n"));
}
