//! Images that can not be pulled.

use crate::{
    finding::Finding,
    rules::{Rule, nothing, pod},
    snapshot::{Group, Snapshot},
};

pub(crate) const RULE: Rule = Rule { wants: nothing, check };

const REASONS: [&str; 5] =
    ["ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"];

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    snapshot.groups.iter().filter_map(|group| explain(snapshot, group)).collect()
}

fn explain(snapshot: &Snapshot<'_>, group: &Group<'_>) -> Option<Finding> {
    let stuck = pod::containers(group)
        .find(|container| container.status.waits_for().is_some_and(|reason| REASONS.contains(&reason)))?;
    let manifest = group.manifest.as_ref()?;
    let spec = manifest.container(&stuck.status.name)?;
    let waiting = stuck.status.state.waiting.as_ref()?;
    let events: Vec<_> = pod::warnings(snapshot, group)
        .into_iter()
        .filter(|event| event.message.contains(&spec.image) && event.message.contains("pull"))
        .collect();
    // "Back-off pulling" says only that it failed before
    let told = events.iter().filter(|event| !event.message.starts_with("Back-off")).collect::<Vec<_>>();
    let message = told.first().map_or(waiting.message.as_str(), |event| event.message);
    let (why, cause) = reason(message, &waiting.reason, manifest.spec.image_pull_secrets.is_empty());
    let shown = if told.is_empty() { events } else { told.into_iter().copied().collect() };
    let image = &spec.image;
    let flag = group.owner.flag();
    let what = format!("can not pull image `{image}`: {why}");
    let mut finding = pod::finding(snapshot, group, &what)
        .because(cause)
        .quoting(pod::event_quote(&shown))
        .quoting(if shown.is_empty() { pod::state_quote(group, stuck) } else { pod::row_quote(group) });
    if why.contains("credentials") {
        finding = finding.next(
            "Give the pods credentials for the registry (then name the secret in `imagePullSecrets`)",
            format!("kubectl create secret docker-registry registry-login{flag} --docker-server=SERVER --docker-username=USER --docker-password=PASSWORD"),
        );
    }
    if pod::is_workload(group) {
        let owner = pod::owner_path(group);
        let repository = image.rsplit_once(':').map_or(image.as_str(), |(repository, _)| repository);
        finding = finding
            .next("See which image the last working revision had", format!("kubectl rollout history {owner}{flag}"))
            .next("Go back to it", format!("kubectl rollout undo {owner}{flag}"))
            .next("Or set a tag that exists", format!("kubectl set image {owner}{flag} {}={repository}:TAG", spec.name));
    }
    Some(finding)
}

fn reason(message: &str, waiting: &str, names_no_secret: bool) -> (&'static str, String) {
    let lower = message.to_lowercase();
    let says = |signs: &[&str]| signs.iter().any(|sign| lower.contains(sign));
    if waiting == "InvalidImageName" {
        ("its name is not valid", "The image reference is malformed; see the message.".to_owned())
    } else if waiting == "ErrImageNeverPull" {
        ("its pull policy is `Never` and the node does not have it",
         "The image has to be on the node already, and is not.".to_owned())
    } else if says(&["unauthorized", "authentication required", "denied", "no basic auth", "403 forbidden"]) {
        let secrets = if names_no_secret { "The pod names no `imagePullSecrets`." } else {
            "The pod names `imagePullSecrets`; their credentials may be wrong, expired or without access to this repository."
        };
        ("the registry wants credentials that the node did not have",
         format!("The registry refused the pull as unauthorized. {secrets} Some registries also answer so for a repository that does not exist."))
    } else if says(&["manifest unknown", "not found", "name unknown", "no such manifest"]) {
        ("there is no such tag or repository",
         "The registry was reached and does not know this tag or repository (`manifest unknown` or `not found`): a typing \
          mistake, or an image that was never pushed or was removed.".to_owned())
    } else if says(&["toomanyrequests", "rate limit"]) {
        ("the registry limits the rate of pulls", "Too many pulls in a short time; signing in raises the limit.".to_owned())
    } else if says(&["no such host", "timeout", "refused", "unreachable", "deadline", "x509", "certificate"]) {
        ("the node can not reach the registry",
         "The registry did not answer the node properly: name resolution, network, proxy or certificate.".to_owned())
    } else {
        ("and what is left to see does not say why", "The warning that names the reason is no longer there.".to_owned())
    }
}
