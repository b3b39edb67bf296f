//! The program started as the chart and the compose file start it: same arguments, variables and files.

use std::collections::BTreeMap;

use harness::{
    models::ScriptedOpenAi,
    process::{Sleuth, Start},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    chart::{Chart, of_kind},
    text, yaml,
};

pub(super) const KEY: &str = "k3y";

/// How a container starts its service.
#[derive(Debug)]
pub(super) struct Service {
    arguments: Vec<String>,
    variables: BTreeMap<String, String>,
}

impl Service {
    /// Starts it on free ports, with the services that it calls where they are here.
    pub(super) async fn start(mut self, elsewhere: &[(&str, String)]) -> Sleuth {
        for listens in ["SLEUTH_HTTP", "SLEUTH_GRPC", "SLEUTH_LISTEN", "SLEUTH_METRICS"] {
            if let Some(address) = self.variables.get_mut(listens) {
                let (host, _) = address.rsplit_once(':').unwrap();
                *address = format!("{host}:0");
            }
        }
        for (name, url) in elsewhere {
            let before = self.variables.insert((*name).to_owned(), url.clone());
            assert!(before.is_some(), "{name} is not set: {self:?}");
        }
        // No collector runs here, and nothing is kept.
        self.variables.remove("OTEL_EXPORTER_OTLP_ENDPOINT");
        self.variables.remove("SLEUTH_DATA_DIR");
        let start = Start::new(self.arguments);
        self.variables
            .into_iter()
            .fold(start, |start, (name, value)| start.env(&name, value))
            .start()
            .await
            .unwrap()
    }
}

pub(super) fn here(service: &Sleuth, name: &str) -> String {
    at("http", service, name)
}

/// The URL of a port that others reach.
pub(super) fn at(scheme: &str, service: &Sleuth, name: &str) -> String {
    let address = service.address(name).unwrap();
    assert!(address.ip().is_unspecified(), "{name} can be reached only from its own pod: {address}");
    format!("{scheme}://127.0.0.1:{}", address.port())
}

/// Starts three services, asks a question, and returns the names of the models and the answer.
async fn ask_split(mut services: BTreeMap<String, Service>, model: &str) -> (Value, Value) {
    let executor = services.remove("executor").unwrap().start(&[]).await;
    let agent = services.remove("agent").unwrap();
    let agent = agent.start(&[("SLEUTH_EXECUTOR", here(&executor, "address"))]).await;
    let gateway = services.remove("gateway").unwrap();
    let gateway = gateway.start(&[("SLEUTH_AGENT", here(&agent, "grpc"))]).await;
    ask(&reqwest::Client::new(), &here(&gateway, "http"), model).await
}

/// Asks a question, and returns the names of the models and the answer.
pub(super) async fn ask(client: &reqwest::Client, url: &str, model: &str) -> (Value, Value) {
    let ready = client.get(format!("{url}/readyz")).send().await.unwrap();
    assert_eq!(ready.status(), 200, "{}", ready.text().await.unwrap());
    let models = client.get(format!("{url}/api/model")).header("x-api-key", KEY).send().await.unwrap();
    let body = json!({ "ask": "look FAKE_LLM{\"rounds\": 1, \"answer\": \"found\"}", "model": model });
    let answer =
        client.post(format!("{url}/api/chat")).header("x-api-key", KEY).json(&body).send().await.unwrap();
    (models.json().await.unwrap(), answer.json().await.unwrap())
}

/// The services of a rendered chart. Files that they mount are written to `folder`, but for those of Secrets that are
/// there already.
pub(super) fn of_chart(objects: &[Value], folder: &TempDir) -> BTreeMap<String, Service> {
    let deployments = of_kind(objects, "Deployment");
    let services = deployments.into_iter().map(|deployment| {
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let variables = container["env"].as_array().unwrap().iter().map(|variable| {
            let value = match variable["value"].as_str() {
                Some(value) if value.starts_with("/etc/sleuth/") => mounted(objects, pod, value, folder),
                Some(value) => value.to_owned(),
                None => KEY.to_owned(),
            };
            (variable["name"].as_str().unwrap().to_owned(), value)
        });
        let service = Service { arguments: texts(&container["args"]), variables: variables.collect() };
        (container["name"].as_str().unwrap().to_owned(), service)
    });
    services.collect()
}

/// Writes what a container sees at a path, and says where.
fn mounted(objects: &[Value], pod: &Value, path: &str, folder: &TempDir) -> String {
    let (directory, file) = path.rsplit_once('/').unwrap();
    let by = |list: &Value, key: &str, value: &Value| -> Value {
        list.as_array()
            .unwrap()
            .iter()
            .find(|item| item[key] == *value)
            .unwrap_or_else(|| panic!("{path}"))
            .clone()
    };
    let mount = by(&pod["containers"][0]["volumeMounts"], "mountPath", &directory.into());
    let volume = by(&pod["volumes"], "name", &mount["name"]);
    let (kind, name) = match volume.get("secret") {
        Some(secret) => ("Secret", &secret["secretName"]),
        None => ("ConfigMap", &volume["configMap"]["name"]),
    };
    let here = folder.path().join(file);
    let made = of_kind(objects, kind).into_iter().find(|object| object["metadata"]["name"] == *name);
    match made.map(|made| [&made["data"][file], &made["stringData"][file]]) {
        Some(texts) => {
            std::fs::write(&here, texts.into_iter().find_map(Value::as_str).unwrap()).unwrap();
        }
        None => assert!(here.is_file(), "{path}"),
    }
    here.to_str().unwrap().to_owned()
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

pub(super) fn values(mode: &str, openai: &ScriptedOpenAi) -> Value {
    json!({
        "mode": mode,
        "modelList": { "fast-model": {
            "api_key": "{{ env.MODEL_KEY }}", "model": "openai/gpt-4.1", "base_url": openai.url(), "temperature": 0,
        }},
        "additionalEnvVars": [{ "name": "MODEL_KEY", "valueFrom": { "secretKeyRef": { "name": "keys", "key": "openai" } } }],
        "clusterName": "prod",
        "config": {
            "max-steps": 20, "max-cost": 1.5, "max-tokens": 2_000_000, "max-seconds": 600, "max-runs": 10, "log": "info",
            "cors-origins": ["https://ui.example.com"], "model-list-as-string": false, "unknown-model-falls-back": false,
        },
    })
}

#[tokio::test]
async fn the_chart_starts_one_process_that_answers() {
    let Some(chart) = Chart::new() else { return };
    let (openai, folder) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
    let objects = chart.render(&values("single", &openai), None).unwrap();
    let server = of_chart(&objects, &folder).remove("server").unwrap().start(&[]).await;
    let (models, answer) = ask(&reqwest::Client::new(), &here(&server, "http"), "fast-model").await;
    assert_eq!(models["model_name"][0], "fast-model");
    assert_eq!(answer["analysis"], "found", "{answer}");
}

#[tokio::test]
async fn the_chart_starts_three_processes_that_answer_together() {
    let Some(chart) = Chart::new() else { return };
    let (openai, folder) = (ScriptedOpenAi::start().await.unwrap(), TempDir::new().unwrap());
    let objects = chart.render(&values("split", &openai), None).unwrap();
    let (models, answer) = ask_split(of_chart(&objects, &folder), "fast-model").await;
    assert_eq!(models["model_name"][0], "fast-model");
    assert_eq!(answer["analysis"], "found", "{answer}");
    assert_eq!(answer["tool_calls"][0]["result"]["status"], "success", "{answer}");
}

#[tokio::test]
async fn the_compose_file_starts_three_processes_that_answer_together() {
    let compose = yaml(&text("deploy/compose.yaml"));
    let services = ["gateway", "agent", "executor"].map(|name| {
        let service = &compose["services"][name];
        let variables = service["environment"].as_object().unwrap().iter().map(|(name, value)| {
            let value = value.as_str().unwrap();
            let value = match value.strip_prefix("${") {
                Some(from_outside) if from_outside.starts_with("SLEUTH_API_KEY:?") => KEY,
                Some(_) => "",
                None => value,
            };
            (name.clone(), value.to_owned())
        });
        (name.to_owned(), Service { arguments: texts(&service["command"]), variables: variables.collect() })
    });
    let (models, answer) = ask_split(services.into(), "builtin/triage").await;
    assert_eq!(models["model_name"], json!(["builtin/triage"]));
    assert!(answer["analysis"].is_string(), "{answer}");
}
