//! Starts one of the programs of a call, and opens the way to clusters for it if it is to have one.

use tokio_util::sync::CancellationToken;

use super::drive::Workshop;
use crate::{
    cluster::Access,
    process::{Outcome, Source, Spec, Watch},
    sandbox::{self, Placed},
};

impl Workshop {
    /// Runs a spec to its end. Its way to clusters is closed then.
    pub(super) async fn launch(
        &self,
        spec: &Spec,
        clusters: Option<Access>,
        stop: &CancellationToken,
        watch: Watch,
        seen: impl FnMut(Source, u64, &[u8]),
    ) -> Outcome {
        let keep = self.limits.output_kept;
        let Some(access) = clusters else {
            return self.launcher.run_watched(spec, keep, stop, watch, seen).await;
        };
        let gate = match self.launcher.gate(spec.access.view) {
            Ok(gate) => gate,
            Err(error) => return Outcome::not_started(format!("the way to clusters: {error}"), None),
        };
        let pass = self.clusters.pass(access);
        let spec = with_kubeconfig(spec, pass.kubeconfig(gate.port));
        let mut open = None;
        let serve = |listener| match pass.serve(listener) {
            Ok(gate) => open = Some(gate),
            Err(error) => tracing::error!(%error, "a command has no way to clusters"),
        };
        let outcome = self.launcher.run_gated(&spec, gate.served_by(serve), keep, stop, watch, seen).await;
        drop(open);
        outcome
    }
}

/// With the file that leads to clusters, and a place for what kubectl wants to keep.
fn with_kubeconfig(spec: &Spec, content: String) -> Spec {
    let place = |name: &str, variable: &str, content| Placed {
        name: name.to_owned(),
        content,
        variable: variable.to_owned(),
    };
    let own = [place("kubeconfig", "KUBECONFIG", Some(content)), place("kubectl", "KUBECACHEDIR", None)];
    let files = spec.access.files.iter().cloned().chain(own).collect();
    Spec { access: sandbox::Access { files, ..spec.access.clone() }, ..spec.clone() }
}
