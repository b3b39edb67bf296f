//! The chart, rendered by Helm's engine and checked against the Kubernetes schemas.

use std::{
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{file, text, tools, yaml};

/// A release of the chart.
pub(super) struct Chart {
    python: std::path::PathBuf,
}

impl Chart {
    /// The chart, if it can be rendered here.
    pub(super) fn new() -> Option<Self> {
        Some(Self { python: tools()?.join("python") })
    }

    /// Renders a release named `test`. `kubeconfig` is the cluster that is asked for what there is already.
    pub(super) fn render(&self, values: &Value, kubeconfig: Option<&Path>) -> Result<Vec<Value>, String> {
        let request = json!({
            "chart": file("deploy/helm/sleuth"), "name": "test", "values": values, "kubeconfig": kubeconfig,
        });
        let mut process = Command::new(&self.python)
            .arg(file("tests/deploy/chart.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        process.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
        let mut answer: Value = serde_json::from_slice(&process.wait_with_output().unwrap().stdout).unwrap();
        match answer["objects"].take() {
            Value::Array(objects) => Ok(objects),
            _ => Err(answer["error"].as_str().unwrap().to_owned()),
        }
    }
}

/// Values that switch everything on.
pub(super) fn everything(mode: &str) -> Value {
    let component = json!({
        "minAvailable": 1, "spreadOver": "topology.kubernetes.io/zone", "podAnnotations": { "a": "b" },
        "podLabels": { "team": "platform" }, "nodeSelector": { "kubernetes.io/os": "linux" },
        "tolerations": [{ "key": "dedicated", "operator": "Exists" }],
        "env": [{ "name": "SLEUTH_LOG", "value": "warn" }],
        "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [] } },
    });
    let mut executor = component.clone();
    executor["autoscaling"] = json!({ "enabled": true, "maxReplicas": 20 });
    executor["connect"] = json!({
        "urls": ["https://hub.example.com:443", "https://other.example.com"], "cluster": "prod",
        "joinToken": { "existingSecret": "join" }, "storageClass": "fast",
    });
    json!({
        "mode": mode,
        "server": component, "gateway": component, "agent": component, "executor": executor,
        "image": { "digest": format!("sha256:{}", "0".repeat(64)), "pullSecrets": [{ "name": "registry" }] },
        "modelList": { "fast-model": {
            "api_key": "{{ env.ANTHROPIC_API_KEY }}", "model": "anthropic/claude-sonnet-4-5-20250929", "temperature": 0,
            "max_tokens": 20_000_000,
        }},
        "additionalEnvVars": [{
            "name": "ANTHROPIC_API_KEY", "valueFrom": { "secretKeyRef": { "name": "keys", "key": "anthropic" } },
        }],
        "toolsets": { "shop/orders": { "description": "Orders", "tools": [
            { "name": "order", "description": "Shows an order.", "command": "curl -fsS http://orders/{{ id }}" },
        ] } },
        "mcp_servers": { "docs": { "description": "Docs", "config": { "url": "http://docs:80/mcp" } } },
        "runbooks": { "slow-shop": "---\nname: slow-shop\ndescription: The shop is slow.\n---\nLook at the orders.\n" },
        "enabledPrompts": ["intro", "time_runbooks"],
        "clusterName": "prod: 1", "config": { "max-steps": 20, "log": "info" },
        "otel": { "endpoint": "http://collector:4317" },
        "additionalVolumes": [{ "name": "kube", "secret": { "secretName": "kube" } }],
        "additionalVolumeMounts": [{ "name": "kube", "mountPath": "/etc/kube" }],
        "store": { "existingSecret": "database" },
        "approvals": { "existingSecret": "signing", "trustedKeys": ["A".repeat(43)] },
        "tls": { "certificateSecret": "certificate", "caSecret": "authority", "clientCertificates": "all" },
        "service": { "annotations": { "a": "b" }, "grpcType": "LoadBalancer", "grpcAnnotations": { "a": "b" } },
        "serviceAccount": { "annotations": { "a": "b" } },
        "ingress": {
            "enabled": true, "className": "nginx", "annotations": { "a": "b" }, "hosts": [{ "host": "sleuth.example.com" }],
            "tls": [{ "secretName": "tls", "hosts": ["sleuth.example.com"] }],
        },
        "rbac": { "extraRules": [{ "apiGroups": ["argoproj.io"], "resources": ["*"], "verbs": ["get"] }] },
        "networkPolicy": {
            "enabled": true, "httpFrom": [{ "namespaceSelector": {} }], "grpcFrom": [{ "podSelector": {} }],
            "metricsFrom": [{ "namespaceSelector": {} }],
        },
        "serviceMonitor": {
            "enabled": true, "labels": { "release": "prometheus" }, "existingSecret": "prometheus-key",
        },
    })
}

/// A cluster that dials a hub.
pub(super) fn dialling() -> Value {
    json!({ "mode": "executor", "executor": { "connect": { "urls": ["http://hub:50051"], "cluster": "eu" } } })
}

pub(super) fn all_values() -> [Value; 8] {
    let least = [json!({}), json!({ "mode": "split" }), json!({ "mode": "hub" }), dialling()];
    let [single, split, hub, executor] = least;
    let most = ["single", "split", "hub", "executor"].map(everything);
    let [all_single, all_split, all_hub, all_executor] = most;
    [single, split, hub, executor, all_single, all_split, all_hub, all_executor]
}

fn name(object: &Value) -> String {
    format!("{}/{}", object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap())
}

pub(super) fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

#[test]
fn each_mode_has_the_objects_it_needs() {
    let Some(chart) = Chart::new() else { return };
    let names = |values: &Value| {
        let mut names: Vec<_> = chart.render(values, None).unwrap().iter().map(name).collect();
        names.sort();
        names
    };
    let single = names(&json!({}));
    assert_eq!(
        single,
        [
            "ClusterRole/default-test-sleuth",
            "ClusterRoleBinding/default-test-sleuth",
            "ConfigMap/test-sleuth",
            "Deployment/test-sleuth-server",
            "Secret/test-sleuth-api-key",
            "Service/test-sleuth",
            "Service/test-sleuth-agent",
            "ServiceAccount/test-sleuth",
        ]
    );
    let split = names(&everything("split"));
    for component in ["gateway", "agent", "executor"] {
        for kind in ["Deployment", "PodDisruptionBudget", "NetworkPolicy"] {
            assert!(
                split.contains(&format!("{kind}/test-sleuth-{component}")),
                "{kind} {component}: {split:?}"
            );
        }
    }
    for one in [
        "HorizontalPodAutoscaler/test-sleuth-executor",
        "Ingress/test-sleuth",
        "ConfigMap/test-sleuth-runbooks",
        "Secret/test-sleuth-models",
        "Secret/test-sleuth-toolsets",
        "Service/test-sleuth-agent-metrics",
        "Service/test-sleuth-executor",
        "ServiceMonitor/test-sleuth-agent",
        "ServiceMonitor/test-sleuth-gateway",
    ] {
        assert!(split.iter().any(|name| name == one), "{one}: {split:?}");
    }
    let own = json!({
        "apiKey": { "existingSecret": "own" }, "serviceAccount": { "create": false }, "rbac": { "create": false },
    });
    let own = names(&own);
    assert!(
        !own.iter().any(|name| name.contains("api-key") || name.contains("Account") || name.contains("Role"))
    );
}

/// What no service of a mode needs is not there, and above all not what nobody else should reach.
#[test]
fn a_hub_runs_nothing_and_a_cluster_that_dials_it_serves_nothing() {
    let Some(chart) = Chart::new() else { return };
    let names = |mode: &str| {
        let objects = chart.render(&everything(mode), None).unwrap();
        objects.iter().map(name).collect::<Vec<_>>()
    };
    let hub = names("hub");
    let none = ["Role", "ServiceAccount", "executor", "toolsets"];
    assert!(hub.iter().all(|name| none.iter().all(|part| !name.contains(part))), "{hub:?}");
    for one in ["Deployment/test-sleuth-gateway", "Deployment/test-sleuth-agent", "Service/test-sleuth-agent"]
    {
        assert!(hub.iter().any(|name| name == one), "{one}: {hub:?}");
    }
    let executor = names("executor");
    let none = ["Service/", "Ingress", "ServiceMonitor", "models", "runbooks", "agent", "gateway"];
    assert!(executor.iter().all(|name| none.iter().all(|part| !name.contains(part))), "{executor:?}");
    for one in ["Deployment/test-sleuth-executor", "PersistentVolumeClaim/test-sleuth-executor"] {
        assert!(executor.iter().any(|name| name == one), "{one}: {executor:?}");
    }
    let mut own = dialling();
    own["executor"]["connect"]["existingClaim"] = "own".into();
    let objects = chart.render(&own, None).unwrap();
    assert!(of_kind(&objects, "PersistentVolumeClaim").is_empty());
    let pod = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"];
    assert!(pod["volumes"].to_string().contains(r#""claimName":"own""#), "{pod}");
    let replicas = |access: &str| {
        let mut values = dialling();
        values["executor"]["connect"]["accessModes"] = json!([access]);
        let objects = chart.render(&values, None).unwrap();
        of_kind(&objects, "Deployment")[0]["spec"]["replicas"].clone()
    };
    assert_eq!((replicas("ReadWriteOnce"), replicas("ReadWriteMany")), (json!(1), json!(2)));
}

/// Only who listens to people signs, and only executors are told whom to believe.
#[test]
fn approvals_are_signed_by_gateways_and_checked_by_executors() {
    let Some(chart) = Chart::new() else { return };
    let knows = |mode: &str, variable: &str| -> Vec<String> {
        let objects = chart.render(&everything(mode), None).unwrap();
        let knows = |deployment: &&&Value| {
            let containers = &deployment["spec"]["template"]["spec"]["containers"];
            containers.to_string().contains(&format!(r#""name":"{variable}""#))
        };
        let deployments = of_kind(&objects, "Deployment");
        deployments.iter().filter(knows).map(|deployment| name(deployment)).collect()
    };
    let (signs, checks) = ("SLEUTH_SIGNING_KEY", "SLEUTH_GRANT_KEYS");
    let deployment = |component: &str| vec![format!("Deployment/test-sleuth-{component}")];
    assert_eq!((knows("single", signs), knows("single", checks)), (deployment("server"), vec![]));
    assert_eq!(
        (knows("split", signs), knows("split", checks)),
        (deployment("gateway"), deployment("executor"))
    );
    assert_eq!((knows("hub", signs), knows("hub", checks)), (deployment("gateway"), vec![]));
    assert_eq!((knows("executor", signs), knows("executor", checks)), (vec![], deployment("executor")));
}

/// Their certificate is for the name of their Service, which all of them share.
#[test]
fn agents_that_share_a_store_say_by_which_name_and_address_they_are_reached() {
    let Some(chart) = Chart::new() else { return };
    let says = |values: &Value| {
        let objects = chart.render(values, None).unwrap();
        let variable = |container: &Value, name: &str| {
            container["env"].as_array().unwrap().iter().find(|one| one["name"] == name).cloned()
        };
        let deployments = of_kind(&objects, "Deployment").into_iter();
        let said = deployments.filter_map(|deployment| {
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let url = variable(container, "SLEUTH_ADVERTISE")?["value"].as_str().unwrap().to_owned();
            let ip = variable(container, "SLEUTH_ADVERTISE_IP").unwrap();
            assert_eq!(ip["valueFrom"]["fieldRef"]["fieldPath"], "status.podIP");
            Some((container["name"].as_str().unwrap().to_owned(), url))
        });
        let names =
            of_kind(&objects, "Service").into_iter().map(|service| service["metadata"]["name"].clone());
        (said.collect::<Vec<_>>(), names.collect::<Vec<_>>())
    };
    for mode in ["hub", "split", "single"] {
        let mut values = json!({ "mode": mode });
        assert_eq!(says(&values).0, [], "who shares nothing is not looked for");
        values["store"] = json!({ "existingSecret": "database" });
        let agent = if mode == "single" { "server" } else { "agent" }.to_owned();
        let (said, services) = says(&values);
        assert_eq!(said, [(agent.clone(), "http://test-sleuth-agent:50051".to_owned())]);
        assert!(services.contains(&json!("test-sleuth-agent")), "{services:?}");
        values["tls"] = json!({ "certificateSecret": "certificate" });
        assert_eq!(says(&values).0, [(agent, "https://test-sleuth-agent:50051".to_owned())]);
    }
}

/// Kubelets have no certificates, and no gRPC under TLS.
#[test]
fn probes_ask_as_much_as_a_kubelet_can() {
    let Some(chart) = Chart::new() else { return };
    for (mode, certificates, expected) in [
        ("split", None, ["gateway http HTTP", "agent grpc", "executor grpc"].as_slice()),
        ("split", Some("none"), &["gateway http HTTPS", "agent tcp", "executor tcp"]),
        ("split", Some("services"), &["gateway http HTTPS", "agent tcp", "executor tcp"]),
        ("split", Some("all"), &["gateway tcp", "agent tcp", "executor tcp"]),
        ("single", Some("services"), &["server http HTTPS"]),
        ("executor", None, &["executor http HTTP"]),
        ("executor", Some("services"), &["executor tcp"]),
    ] {
        let mut values = dialling();
        values["mode"] = mode.into();
        if let Some(certificates) = certificates {
            values["tls"] = json!({
                "certificateSecret": "certificate", "caSecret": "authority", "clientCertificates": certificates,
            });
        }
        let objects = chart.render(&values, None).unwrap();
        let probes = of_kind(&objects, "Deployment").into_iter().map(|deployment| {
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let probe = &container["readinessProbe"];
            let how = match (probe["httpGet"]["scheme"].as_str(), probe["grpc"].is_object()) {
                (Some(scheme), _) => format!("http {scheme}"),
                (None, true) => "grpc".to_owned(),
                (None, false) => probe["tcpSocket"]["port"].as_str().map(|_| "tcp".to_owned()).unwrap(),
            };
            format!("{} {how}", container["name"].as_str().unwrap())
        });
        let mut probes: Vec<_> = probes.collect();
        let mut expected = expected.to_vec();
        probes.sort();
        expected.sort_unstable();
        assert_eq!(probes, expected, "{mode} {certificates:?}");
    }
}

#[test]
fn values_that_mean_nothing_are_refused() {
    let Some(chart) = Chart::new() else { return };
    for (values, place) in [
        (json!({ "mode": "both" }), "/mode"),
        (json!({ "colour": "red" }), "colour"),
        (json!({ "config": { "max-stepz": 1 } }), "max-stepz"),
        (json!({ "agent": { "autoscaling": {} } }), "autoscaling"),
        (json!({ "modelList": { "fast": { "api_key": "k" } } }), "/modelList/fast"),
        (json!({ "additionalEnvVars": [{ "value": "v" }] }), "/additionalEnvVars/0"),
        (json!({ "listen": "127.0.0.1" }), "/listen"),
        (json!({ "runbooks": { "a/b": "text" } }), "a/b"),
        (json!({ "toolsets": { "own": "text" } }), "/toolsets/own"),
        (json!({ "mode": "executor" }), "executor.connect.urls"),
        (
            json!({ "mode": "executor", "executor": { "connect": { "urls": ["http://hub"] } } }),
            "connect.cluster",
        ),
        (json!({ "executor": { "connect": { "urls": ["hub:443"] } } }), "/executor/connect/urls/0"),
        (json!({ "tls": { "clientCertificates": "all" } }), "tls.certificateSecret"),
        (json!({ "tls": { "clientCertificates": "some" } }), "/tls/clientCertificates"),
    ] {
        let error = chart.render(&values, None).unwrap_err();
        assert!(error.contains(place), "{values}: {error}");
    }
}

#[test]
fn values_and_their_schema_name_the_same_things() {
    fn compare(schema: &Value, values: &Value, root: &Value) {
        let schema = match schema["$ref"].as_str() {
            Some(reference) => root.pointer(reference.trim_start_matches('#')).unwrap(),
            None => schema,
        };
        let Some(properties) = schema["properties"].as_object() else { return };
        // A map that is empty by default has its keys in its comment.
        for (name, schema) in properties.iter().filter(|_| *values != json!({})) {
            assert!(name == "global" || values.get(name).is_some(), "`{name}` is not in values.yaml");
            compare(schema, &values[name], root);
        }
    }
    let schema: Value = serde_json::from_str(&text("deploy/helm/sleuth/values.schema.json")).unwrap();
    compare(&schema, &yaml(&text("deploy/helm/sleuth/values.yaml")), &schema);
}

#[test]
fn the_chart_installs_this_version() {
    assert_eq!(yaml(&text("deploy/helm/sleuth/Chart.yaml"))["appVersion"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn pods_may_do_no_more_than_they_must() {
    let Some(chart) = Chart::new() else { return };
    for values in all_values() {
        let objects = chart.render(&values, None).unwrap();
        for deployment in of_kind(&objects, "Deployment") {
            let spec = &deployment["spec"]["template"]["spec"];
            let container = &spec["containers"][0];
            let component = container["name"].as_str().unwrap();
            let runs_commands = matches!(component, "server" | "executor");
            let calls_models = matches!(component, "server" | "agent");
            assert_eq!(spec["automountServiceAccountToken"], runs_commands, "{component}");
            assert_eq!(spec["serviceAccountName"].is_string(), runs_commands, "{component}");
            assert_eq!(spec["enableServiceLinks"], false, "{component}");
            assert_eq!(spec["securityContext"]["runAsNonRoot"], true, "{component}");
            assert_eq!(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", "{component}");
            let security = json!({
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] },
            });
            assert_eq!(container["securityContext"], security, "{component}");
            let text = container.to_string();
            for (own, here) in [
                ("/etc/sleuth/runbooks", calls_models),
                ("intro,time_runbooks", calls_models),
                ("/etc/sleuth/toolsets", runs_commands),
                (r#""database""#, calls_models),
                (r#""join""#, runs_commands && values["mode"] == "executor"),
            ] {
                assert_eq!(text.contains(own), here && values["runbooks"].is_object(), "{component}: {own}");
            }
            for secret in ["ANTHROPIC_API_KEY", "/etc/sleuth/models"] {
                let expected = calls_models && values["modelList"].is_object();
                assert_eq!(text.contains(secret), expected, "{component}: {secret}");
            }
        }
    }
}

/// What the pods mount is what the program takes.
#[test]
fn the_program_reads_what_the_chart_writes() {
    let Some(chart) = Chart::new() else { return };
    let objects = chart.render(&everything("single"), None).unwrap();
    let object = |wanted: &str| objects.iter().find(|object| name(object) == wanted).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let toolsets = folder.path().join("toolsets.yaml");
    let text = &object("Secret/test-sleuth-toolsets")["stringData"]["toolsets.yaml"];
    std::fs::write(&toolsets, text.as_str().unwrap()).unwrap();
    let runbooks = folder.path().join("runbooks");
    let texts = &object("ConfigMap/test-sleuth-runbooks")["data"];
    let pod = &of_kind(&objects, "Deployment")[0]["spec"]["template"]["spec"];
    let volume =
        pod["volumes"].as_array().unwrap().iter().find(|volume| volume["name"] == "runbooks").unwrap();
    for item in volume["configMap"]["items"].as_array().unwrap() {
        let path = runbooks.join(item["path"].as_str().unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, texts[item["key"].as_str().unwrap()].as_str().unwrap()).unwrap();
    }
    let start = harness::process::Start::serve()
        .arg("--toolsets")
        .arg(toolsets)
        .arg("--runbooks")
        .arg(runbooks)
        .env("ENABLED_PROMPTS", "intro,time_runbooks");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async { start.start().await.unwrap().stop().await.unwrap() });
}

#[test]
fn only_a_change_of_settings_restarts_pods() {
    let Some(chart) = Chart::new() else { return };
    let template = |steps: u32| {
        let objects = chart.render(&json!({ "config": { "max-steps": steps } }), None).unwrap();
        of_kind(&objects, "Deployment")[0]["spec"]["template"].clone()
    };
    assert_eq!(template(1), template(1));
    assert_ne!(template(1), template(2));
}
