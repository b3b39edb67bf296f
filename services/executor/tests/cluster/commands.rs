//! The executor as a whole: its commands reach the cluster, and none sees what they reach it with.

use executor::cluster::Source;
use serde_json::Value;

use crate::{
    bench::admin,
    rig::{Rig, config},
};

#[tokio::test]
async fn commands_reach_the_cluster_and_not_the_credential() {
    let Some(admin) = admin() else { return };
    let text = std::fs::read_to_string(&admin).unwrap();
    let token: Value = serde_json::from_str(&text).unwrap();
    let token = token["users"][0]["user"]["token"].as_str().unwrap().to_owned();
    let mut config = config();
    config.kubernetes.source = Source::files([admin.clone()]);
    let mut rig = Rig::with(config).await;

    let pods = rig.bash("kubectl get pods -n orders -o name | sort").await;
    assert!(pods.data.contains("pod/orders-db-0"), "{pods:?}");
    let described = rig
        .run(
            "kubectl_describe",
            &serde_json::json!({"kind": "pod", "name": "orders-db-0", "namespace": "orders"}),
        )
        .await;
    assert!(described.data.contains("OOMKilled"), "{described:?}");

    let file = admin.display();
    let own = "kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}'";
    let seen = rig.bash(&format!("{own} | cat; kubectl get pods -n orders")).await;
    assert!(seen.data.contains("http://127.0.0.1:"), "{seen:?}");
    let refused = [
        "kubectl config view --raw".to_owned(),
        "cat $KUBECONFIG".to_owned(),
        "kubectl delete pod x".to_owned(),
    ];
    let hidden =
        [format!("cat {file}"), format!("grep -r token {file}"), format!("kubectl get pods | cat {file}")];
    for command in refused.iter().chain(&hidden) {
        let said = rig.bash(command).await;
        assert_ne!(said.exit_code, Some(0), "{command}: {said:?}");
        assert!(!format!("{said:?}").contains(&token), "{command}: {said:?}");
    }
    assert!(!format!("{pods:?}{described:?}{seen:?}").contains(&token));
}
