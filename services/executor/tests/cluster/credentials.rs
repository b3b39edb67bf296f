//! Every kind of credential that a kubeconfig may hold, before the real API server or one that tells what it saw.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use axum::{Router, extract::Request, response::Json};
use executor::cluster::{Access, Clusters, Impersonate, Settings, Source};
use serde_json::{Value, json};

use crate::bench::{Door, Said, admin, run};

/// A kubeconfig with one context, made of the administrator's.
struct Config {
    folder: tempfile::TempDir,
    cluster: Value,
    token: String,
    authority: PathBuf,
}

impl Config {
    fn new(admin: &Path) -> Self {
        let text = std::fs::read_to_string(admin).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        Self {
            folder: tempfile::tempdir().unwrap(),
            cluster: config["clusters"][0]["cluster"].clone(),
            token: config["users"][0]["user"]["token"].as_str().unwrap().to_owned(),
            authority: admin.with_file_name("ca.crt"),
        }
    }

    fn put(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.put(name, &format!("#!/bin/bash\n{script}\n"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        path
    }

    fn write(&self, cluster: &Value, user: &Value) -> PathBuf {
        let config = json!({
            "clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "one/of: many", "context": {"cluster": "c", "user": "u", "namespace": "orders"}}],
            "current-context": "one/of: many",
        });
        self.put("config", &config.to_string())
    }

    async fn asks(&self, cluster: &Value, user: &Value, command: &str) -> Said {
        let settings = Settings { source: Source::files([self.write(cluster, user)]), ..Settings::default() };
        run(&Door::open(settings, Access::default()), command).await
    }
}

const READ: &str = "kubectl get pod orders-db-0 -o name";

#[tokio::test]
async fn each_kind_of_credential_is_shown() {
    let Some(admin) = admin() else { return };
    let config = Config::new(&admin);
    let (token, beside) = (&config.token, |name: &str| admin.with_file_name(name));
    let encoded = |name| {
        use base64::Engine as _;
        base64::prelude::BASE64_STANDARD.encode(std::fs::read(beside(name)).unwrap())
    };
    let credential = |version: &str, status: &Value| json!({"apiVersion": format!("client.authentication.k8s.io/{version}"), "kind": "ExecCredential", "status": status});
    config.put("token", &format!("{token}\n"));
    config.put("v1", &credential("v1", &json!({"token": token})).to_string());
    let pem = |name| std::fs::read_to_string(beside(name)).unwrap();
    let certificate = json!({"clientCertificateData": pem("client.crt"), "clientKeyData": pem("client.key")});
    config.put("certificate", &credential("v1beta1", &certificate).to_string());
    config.program(
        "plugin",
        "[[ $KUBERNETES_EXEC_INFO == *'\"interactive\":false'* && $A == b ]] && cat \"${0%/*}/$1\"",
    );
    let plugin = |version: &str, file: &str| {
        json!({"exec": {
            "apiVersion": format!("client.authentication.k8s.io/{version}"), "command": "./plugin", "args": [file],
            "env": [{"name": "A", "value": "b"}], "interactiveMode": "IfAvailable", "provideClusterInfo": true,
        }})
    };
    for (what, user) in [
        ("a token", json!({"token": token})),
        ("a token file", json!({"tokenFile": "token"})),
        (
            "a certificate",
            json!({"client-certificate": beside("client.crt"), "client-key": beside("client.key")}),
        ),
        (
            "a certificate in place",
            json!({"client-certificate-data": encoded("client.crt"), "client-key-data": encoded("client.key")}),
        ),
        ("a plugin with a token", plugin("v1", "v1")),
        ("a plugin with a certificate", plugin("v1beta1", "certificate")),
        ("another identity", json!({"token": token, "as": "viewer", "as-groups": ["system:authenticated"]})),
    ] {
        let said = config.asks(&config.cluster, &user, READ).await;
        assert_eq!(said.stdout.trim(), "pod/orders-db-0", "{what}: {said:?}");
    }
}

#[tokio::test]
async fn a_server_is_known_in_each_way() {
    let Some(admin) = admin() else { return };
    let config = Config::new(&admin);
    let server = config.cluster["server"].as_str().unwrap();
    let user = json!({"token": config.token});
    std::fs::copy(&config.authority, config.folder.path().join("ca.crt")).unwrap();
    for (cluster, works) in [
        (json!({"server": server, "certificate-authority": "ca.crt"}), true),
        (json!({"server": server, "insecure-skip-tls-verify": true}), true),
        (json!({"server": server, "certificate-authority": "ca.crt", "tls-server-name": "kubernetes"}), true),
        (
            json!({"server": server, "certificate-authority": "ca.crt", "tls-server-name": "evil.invalid"}),
            false,
        ),
        (json!({"server": server}), false),
        (json!({"server": server.replace("https", "http"), "certificate-authority": "ca.crt"}), false),
    ] {
        let said = config.asks(&cluster, &user, READ).await;
        assert_eq!(said.ok, works, "{cluster}: {said:?}");
        assert!(!format!("{said:?}").contains(&config.token));
    }
}

#[tokio::test]
async fn what_is_wrong_is_said_without_the_credential() {
    let Some(admin) = admin() else { return };
    let config = Config::new(&admin);
    config.program("fails", "echo SECRET; exit 3");
    config.program("babbles", "echo SECRET");
    let exec = |command: &str| json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": command}});
    for (user, expected) in [
        (exec("./fails"), "the exec plugin `fails` failed: exit status: 3"),
        (exec("./babbles"), "did not print an ExecCredential"),
        (exec("no-such-program"), "could not be started"),
        (json!({"tokenFile": "nowhere"}), "cannot read the token file"),
        (json!({"client-certificate": "nowhere"}), "cannot read the client certificate"),
        (json!({"auth-provider": {"name": "gcp"}}), "use an exec plugin"),
        (json!({"token": "wrong"}), "You must be logged in"),
    ] {
        let said = config.asks(&config.cluster, &user, READ).await;
        assert!(!said.ok && said.stderr.contains(expected), "{user}: {said:?}");
        assert!(!said.stderr.contains("SECRET"), "{said:?}");
    }
    let nobody = json!({"server": "https://127.0.0.1:1"});
    let said = config.asks(&nobody, &json!({}), READ).await;
    assert!(said.stderr.contains("Unable to connect to the server"), "{said:?}");
    let broken = config.put("broken", "contexts: [");
    let settings = Settings { source: Source::files([broken]), ..Settings::default() };
    let said = run(&Door::open(settings, Access::default()), READ).await;
    assert!(said.stderr.contains("is not valid"), "{said:?}");
}

#[tokio::test]
async fn a_kubeconfig_and_a_token_file_are_read_again_when_they_change() {
    let Some(admin) = admin() else { return };
    let config = Config::new(&admin);
    let token = config.put("token", "wrong");
    let path = config.write(&config.cluster, &json!({"tokenFile": token}));
    let clusters = Clusters::new(Settings { source: Source::files([path]), ..Settings::default() });
    let door = Door::of(&clusters, Access::default());
    assert!(!run(&door, READ).await.ok);
    config.put("token", &config.token);
    assert!(run(&door, READ).await.ok, "the token file is read at each use");
    config.write(&json!({"server": "https://127.0.0.1:1"}), &json!({}));
    assert!(!run(&Door::of(&clusters, Access::default()), READ).await.ok, "the kubeconfig is read again");
}

#[tokio::test]
async fn all_contexts_can_be_named() {
    let Some(admin) = admin() else { return };
    let viewer = admin.with_file_name("viewer.kubeconfig");
    let settings = Settings { source: Source::files([admin, viewer]), ..Settings::default() };
    let door = Door::open(settings, Access::default());
    let said =
        run(&door, "kubectl auth can-i delete pods; kubectl --context viewer auth can-i delete pods").await;
    assert_eq!(said.stdout, "yes\nno\n", "{said:?}");
    let said = run(&door, "kubectl --context viewer get secrets -A").await;
    assert!(said.stderr.contains("\"viewer\" cannot list"), "{said:?}");
}

/// A server that tells the headers that it got.
async fn telling() -> (String, Arc<Mutex<Vec<Value>>>) {
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let own = Arc::clone(&seen);
    let answer = move |request: Request| {
        let headers = request.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().into()));
        own.lock().unwrap().push(Value::Object(headers.collect()));
        async { Json(json!({"gitVersion": "v1.30.0", "major": "1", "minor": "30"})) }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await.unwrap() });
    (address, seen)
}

/// Asks for one thing, once: kubectl may ask more than it says.
async fn version(door: &Door) -> String {
    let cluster = &door.kubeconfig()["clusters"][0]["cluster"];
    let (proxy, server) = (cluster["proxy-url"].as_str().unwrap(), cluster["server"].as_str().unwrap());
    run(door, &format!("curl -sS -x {proxy} {}/version", server.trim_end_matches('/'))).await.stdout
}

#[tokio::test]
async fn the_api_server_learns_who_asks_and_for_which_run() {
    if !harness::components::has_program("curl") {
        return;
    }
    let (server, seen) = telling().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let config = json!({
        "clusters": [{"name": "c", "cluster": {"server": server}}], "current-context": "c",
        "users": [{"name": "u", "user": {"username": "me", "password": "pass:word"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    });
    std::fs::write(&path, config.to_string()).unwrap();
    let settings =
        |impersonate| Settings { source: Source::files([path.clone()]), impersonate, ..Settings::default() };
    let access = Access {
        run: "run-1".to_owned(),
        execution: "e\n2".to_owned(),
        principal: "ada".to_owned(),
        ..Access::default()
    };
    assert!(version(&Door::open(settings(Impersonate::Principal), access)).await.contains("v1.30.0"));
    let headers = seen.lock().unwrap().remove(0);
    assert_eq!(headers["authorization"], "Basic bWU6cGFzczp3b3Jk");
    assert_eq!(headers["impersonate-user"], "ada");
    let agent = headers["user-agent"].as_str().unwrap();
    assert!(agent.starts_with("curl/") && agent.ends_with("sleuth (run=run-1; execution=e2)"), "{agent}");
    assert!(headers.get("proxy-authorization").is_none());

    let nobody = Door::open(settings(Impersonate::Principal), Access::default());
    let told = version(&nobody).await;
    assert!(told.contains("its caller, who is not known"), "{told}");
}

#[tokio::test]
async fn a_plugin_runs_once_until_its_credential_expires() {
    if !harness::components::has_program("curl") {
        return;
    }
    let (server, _) = telling().await;
    for (expires, runs) in [("2100-01-01T00:00:00Z", 1), ("2001-01-01T00:00:00Z", 3)] {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("plugin");
        let status = json!({"token": "t", "expirationTimestamp": expires});
        let printed = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status});
        std::fs::write(&program, format!("#!/bin/bash\necho x >> ${{0%/*}}/runs\necho '{printed}'\n"))
            .unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o700)).unwrap();
        let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": program});
        let config = json!({
            "clusters": [{"name": "c", "cluster": {"server": server}}], "current-context": "c",
            "users": [{"name": "u", "user": {"exec": exec}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        });
        let path = folder.path().join("config");
        std::fs::write(&path, config.to_string()).unwrap();
        let settings = Settings { source: Source::files([path]), ..Settings::default() };
        let door = Door::open(settings, Access::default());
        for _ in 0..3 {
            assert!(version(&door).await.contains("v1.30.0"));
        }
        assert_eq!(std::fs::read_to_string(folder.path().join("runs")).unwrap().lines().count(), runs);
    }
}
