//! The parts of a pod's manifest that rules read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A pod.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    pub(crate) metadata: Metadata,
    pub(crate) spec: Spec,
    pub(crate) status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) owner_references: Vec<Owner>,
    pub(crate) deletion_timestamp: Option<String>,
    pub(crate) finalizers: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Owner {
    pub(crate) kind: String,
    pub(crate) name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Spec {
    pub(crate) node_name: String,
    pub(crate) containers: Vec<Container>,
    pub(crate) init_containers: Vec<Container>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) image_pull_secrets: Vec<Named>,
    pub(crate) node_selector: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Named {
    pub(crate) name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) resources: Resources,
    pub(crate) ports: Vec<Port>,
    pub(crate) liveness_probe: Option<Value>,
    pub(crate) readiness_probe: Option<Value>,
    pub(crate) startup_probe: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Resources {
    pub(crate) limits: BTreeMap<String, Value>,
    pub(crate) requests: BTreeMap<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) container_port: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Volume {
    pub(crate) persistent_volume_claim: Option<ClaimRef>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ClaimRef {
    pub(crate) claim_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Status {
    pub(crate) phase: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) container_statuses: Vec<ContainerStatus>,
    pub(crate) init_container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContainerStatus {
    pub(crate) name: String,
    pub(crate) ready: bool,
    pub(crate) restart_count: u32,
    pub(crate) state: State,
    pub(crate) last_state: State,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    pub(crate) waiting: Option<Waiting>,
    pub(crate) running: Option<Running>,
    pub(crate) terminated: Option<Terminated>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Waiting {
    pub(crate) reason: String,
    pub(crate) message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Running {
    pub(crate) started_at: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Terminated {
    pub(crate) exit_code: i32,
    pub(crate) reason: String,
    pub(crate) started_at: String,
    pub(crate) finished_at: String,
}

impl Pod {
    /// Reads `kubectl get pod -o yaml`; `None` for anything else, or if it was cut.
    pub(crate) fn read(yaml: &str) -> Option<Self> {
        serde_saphyr::from_str::<Self>(yaml).ok().filter(|pod| !pod.metadata.name.is_empty())
    }

    /// The specification of a container, init containers included.
    pub(crate) fn container(&self, name: &str) -> Option<&Container> {
        self.spec.containers.iter().chain(&self.spec.init_containers).find(|container| container.name == name)
    }

    /// A condition that is not met.
    pub(crate) fn unmet(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind && condition.status != "True")
    }
}

impl ContainerStatus {
    /// How it ended last: now, or before its present state.
    pub(crate) fn ended(&self) -> Option<&Terminated> {
        self.state.terminated.as_ref().or(self.last_state.terminated.as_ref())
    }

    /// Why it waits.
    pub(crate) fn waits_for(&self) -> Option<&str> {
        self.state.waiting.as_ref().map(|waiting| waiting.reason.as_str())
    }
}

/// A service.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Service {
    pub(crate) spec: ServiceSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceSpec {
    pub(crate) ports: Vec<ServicePort>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ServicePort {
    pub(crate) target_port: Value,
}

impl Service {
    /// Reads `kubectl get service -o yaml`.
    pub(crate) fn read(yaml: &str) -> Option<Self> {
        serde_saphyr::from_str(yaml).ok()
    }

    /// Target ports that are given by name.
    pub(crate) fn named_ports(&self) -> impl Iterator<Item = &str> {
        self.spec.ports.iter().filter_map(|port| port.target_port.as_str())
    }
}
