//! Values of Secrets are hidden however they are asked for; their keys and sizes are not.

use executor::cluster::{Access, Secrets, Settings, Source, Writes};
use serde_json::json;

use crate::bench::{Door, admin, create, directly, door, first_lines, run};

const OWN: &str = "proxy-masks";
/// `hunter2-hunter2` and how it looks in base64.
const VALUE: &str = "hunter2-hunter2";
const ENCODED: &str = "aHVudGVyMi1odW50ZXIy";

/// A value that is shorter than most.
const SHORT: &str = "MTIzNA==";

/// Ways to ask, and what each must still show.
const WAYS: &[(&str, &str)] = &[
    ("kubectl get secret db -n $N", "db"),
    ("kubectl get secrets -A -o wide", "db"),
    ("kubectl get secret db -n $N -o json", "\"password\": \"KioqKioqKioqKioqKioq\""),
    ("kubectl get secret db -n $N -o yaml --show-managed-fields", "password: KioqKioqKioqKioqKioq"),
    ("kubectl get secrets -n $N -o yaml --chunk-size=1", "password: KioqKioqKioqKioqKioq"),
    ("kubectl get secret db -n $N -o jsonpath='{.data.password}'", "KioqKioqKioqKioqKioq"),
    ("kubectl get secret db -n $N -o go-template='{{.data.password | base64decode}}'", "***************"),
    ("kubectl get secret db -n $N -o custom-columns=V:.data.password", "KioqKioqKioqKioqKioq"),
    ("kubectl get secrets -n $N --sort-by=.data.password", "db"),
    ("kubectl get secret db -n $N -L team -o json", "\"team\": \"shop\""),
    ("kubectl describe secret db -n $N", "password:  15 bytes"),
    ("kubectl get --raw /api/v1/namespaces/$N/secrets/db", "KioqKioqKioqKioqKioq"),
    ("kubectl get --raw /api/v1/namespaces/$N/%73ecrets", "KioqKioqKioqKioqKioq"),
    (
        "curl -sS -A test -x $P $S/api/v1/namespaces/$N/secrets/db -H 'Accept: application/yaml'",
        "KioqKioqKioqKioqKioq",
    ),
    (
        "curl -sS -A test -x $P $S/api/v1/secrets -H 'Accept: application/vnd.kubernetes.protobuf'",
        "KioqKioqKioqKioqKioq",
    ),
    (
        "curl -sS -A test -x $P $S/api/v1/namespaces/$N/secrets/db -H 'Accept-Encoding: gzip'",
        "KioqKioqKioqKioqKioq",
    ),
    (
        "curl -sS -A test -x $P \"$S/api/v1/namespaces/$N/secrets?includeObject=Object\" \
         -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io'",
        "KioqKioqKioqKioqKioq",
    ),
];

fn script(door: &Door, command: &str) -> String {
    let cluster = &door.kubeconfig()["clusters"][0]["cluster"];
    let text = |name: &str| cluster[name].as_str().unwrap().trim_end_matches('/').to_owned();
    format!("N={OWN}; P={}; S={}; {command}", text("proxy-url"), text("server"))
}

#[tokio::test]
async fn no_way_to_ask_shows_a_value() {
    let Some(admin) = admin() else { return };
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "data": {"password": ENCODED},
        "metadata": {"name": "db", "labels": {"team": "shop"}},
    });
    create(&admin, OWN, &[secret]).await;
    let shown =
        Settings { source: Source::files([admin.clone()]), secrets: Secrets::Shown, ..Settings::default() };
    let showing = Door::open(shown, Access::default());
    let hiding = door(&admin, Writes::Refused);
    for (command, kept) in WAYS {
        let said = run(&hiding, &script(&hiding, command)).await;
        assert!(said.stdout.contains(kept), "{command}: {said:?}");
        assert!(!said.stdout.contains(VALUE) && !said.stdout.contains(ENCODED), "{command}: {said:?}");
    }
    // The same where the operator wants it shown, so that each way would have shown it. The old API server crashes
    // when it is asked for YAML itself.
    let shows = |(command, kept): &&(&str, &str)| {
        !command.contains("application/yaml") && (kept.contains("Kioq") || kept.contains("***"))
    };
    for (command, kept) in WAYS.iter().filter(shows) {
        let said = run(&showing, &script(&showing, command)).await;
        let told = said.stdout.contains(VALUE) || said.stdout.contains(ENCODED);
        assert!(
            told || ["gzip", "protobuf"].iter().any(|form| command.contains(form)),
            "{command} {kept}: {said:?}"
        );
    }

    let watched = first_lines(&hiding, &format!("kubectl get secret db -n {OWN} -w -o json"), 5).await;
    let raw = format!("kubectl get --raw '/api/v1/namespaces/{OWN}/secrets?watch=1'");
    let events = first_lines(&hiding, &raw, 1).await;
    let all = [watched, events].concat().join("\n");
    assert!(all.contains("Kioq") && !all.contains(ENCODED), "{all}");
}

#[tokio::test]
async fn masks_are_never_written() {
    let Some(admin) = admin() else { return };
    let own = "proxy-masks-written";
    let secret = |name: &str, value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"password": value}});
    create(&admin, own, &[secret("db", ENCODED), secret("short", SHORT)]).await;
    let door = door(&admin, Writes::Granted);
    for (name, value) in [("db", ENCODED), ("short", SHORT)] {
        let copy = format!("kubectl get secret {name} -n {own} -o json | kubectl replace -n {own} -f -");
        let said = run(&door, &copy).await;
        assert!(!said.ok && said.stderr.contains("masks"), "{said:?}");
        let label =
            format!("kubectl label secret {name} -n {own} a=b && kubectl get secret {name} -n {own} -o yaml");
        let said = run(&door, &label).await;
        assert!(said.ok && said.stdout.contains("a: b") && !said.stdout.contains(value), "{said:?}");
        let kept = format!("kubectl get secret {name} -n {own} -o jsonpath={{.data.password}}");
        assert_eq!(directly(&admin, &kept, "").await.stdout, value);
    }
}
