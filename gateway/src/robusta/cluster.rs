//! Which cluster a question is about.

use http::StatusCode;
use serde_json::{Map, Value};
use tonic::Code;
use wire::agent::NameClusterRequest;

use crate::{asker::Asker, problem::Problem, state::Shared};

use super::{problem::Failure, request::About};

const FIELDS: [&str; 4] = ["cluster_name", "cluster", "cluster_id", "source"];
/// Where alerts have more fields.
const WITHIN: [&str; 2] = ["labels", "annotations"];

/// Why no cluster is chosen.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Unresolved {
    #[error("The API key is not for the cluster `{0}`")]
    NotPermitted(String),
    #[error("The cluster `{0}` is not connected to this account")]
    NotConnected(String),
    #[error("No cluster is connected to this account")]
    NoneConnected,
    #[error("The cluster could not be determined: name it in `cluster_id`. Connected clusters: {}", .0.join(", "))]
    Ambiguous(Vec<String>),
}

impl From<Unresolved> for Failure {
    fn from(unresolved: Unresolved) -> Self {
        let status = match unresolved {
            Unresolved::NotPermitted(_) => StatusCode::FORBIDDEN,
            Unresolved::NotConnected(_) | Unresolved::NoneConnected => StatusCode::NOT_FOUND,
            Unresolved::Ambiguous(_) => StatusCode::BAD_REQUEST,
        };
        Self::new(status, &unresolved.to_string(), "CLUSTER_ERROR")
    }
}

/// Refuses a cluster that the asker's key is not for.
pub(super) fn permit(about: &About, asker: &Asker) -> Result<(), Failure> {
    Ok(permitted(about.cluster_id.as_deref(), &asker.caller.clusters)?)
}

/// Chooses among the clusters that the asker may reach.
pub(super) async fn choose(about: &About, asker: &Asker, shared: &Shared) -> Result<String, Failure> {
    let connected = connected(asker, shared).await?;
    match resolve(about, &connected) {
        Err(Unresolved::Ambiguous(among)) => {
            let named = by_model(about, &among, asker, shared).await?;
            Ok(named.ok_or(Unresolved::Ambiguous(among))?)
        }
        resolved => Ok(resolved?),
    }
}

/// What a model makes of the payload and the question, if that is the name of one of these.
async fn by_model(
    about: &About,
    among: &[String],
    asker: &Asker,
    shared: &Shared,
) -> Result<Option<String>, Problem> {
    let payload = about.payload.as_ref().filter(|payload| !payload.is_empty());
    // A map with text keys can always be written.
    let payload = payload.map(|payload| serde_json::to_string_pretty(payload).unwrap_or_default());
    let texts: Vec<_> = payload.into_iter().chain(about.ask.clone()).collect();
    if texts.iter().all(String::is_empty) {
        return Ok(None);
    }
    let asked = NameClusterRequest {
        caller: Some(asker.caller.clone()),
        text: texts.join("\n\n"),
        clusters: among.to_vec(),
        model: about.model.clone().unwrap_or_default(),
    };
    let named = match shared.upstream.name_cluster(asked).await {
        // An agent that is older does not ask models.
        Err(status) if status.code() == Code::Unimplemented => None,
        named => named?,
    };
    Ok(named.filter(|name| among.contains(name)))
}

/// The clusters that are connected now and that the key is for.
async fn connected(asker: &Asker, shared: &Shared) -> Result<Vec<String>, Problem> {
    let mut connected = shared.clusters(asker).await?;
    let only = &asker.caller.clusters;
    connected.retain(|name| only.is_empty() || find(only, name).is_some());
    Ok(connected)
}

/// Whether a cluster may be named; what a key is not for is refused before anything is told of it.
fn permitted(named: Option<&str>, only: &[String]) -> Result<(), Unresolved> {
    match named {
        Some(name) if !only.is_empty() && find(only, name).is_none() => {
            Err(Unresolved::NotPermitted(name.to_owned()))
        }
        Some(_) | None => Ok(()),
    }
}

/// The documented order but for the model: what the request names, what its payload names, what its question names, what
/// is the only one.
/// Names that are not connected count only where the request itself names them.
fn resolve(about: &About, connected: &[String]) -> Result<String, Unresolved> {
    if connected.is_empty() {
        return Err(Unresolved::NoneConnected);
    }
    if let Some(name) = about.cluster_id.as_deref().filter(|name| !name.is_empty()) {
        let found = find(connected, name).ok_or_else(|| Unresolved::NotConnected(name.to_owned()));
        return found.map(str::to_owned);
    }
    let payload = about.payload.as_ref().and_then(|payload| in_payload(payload, connected));
    let question = || about.ask.as_deref().and_then(|ask| in_question(ask, connected));
    match (payload.or_else(question), connected) {
        (Some(found), _) => Ok(found.to_owned()),
        (None, [only]) => Ok(only.clone()),
        (None, _) => Err(Unresolved::Ambiguous(connected.to_vec())),
    }
}

fn in_payload<'a>(payload: &Map<String, Value>, connected: &'a [String]) -> Option<&'a str> {
    let inner = WITHIN.iter().filter_map(|key| payload.get(*key)?.as_object());
    let maps = std::iter::once(payload).chain(inner);
    let named = maps.flat_map(|map| FIELDS.iter().filter_map(|key| map.get(*key)?.as_str()));
    let mut found = named.filter_map(|name| find(connected, name));
    found.next()
}

/// A connected name that stands as a word of its own; of several the longest, and none of two that are equally long.
fn in_question<'a>(ask: &str, connected: &'a [String]) -> Option<&'a str> {
    let mut named: Vec<&str> =
        connected.iter().map(String::as_str).filter(|name| stands_in(ask, name)).collect();
    named.sort_by_key(|name| std::cmp::Reverse(name.len()));
    match named[..] {
        [] => None,
        [first, second, ..] if first.len() == second.len() || !first.contains(second) => None,
        [first, ..] => Some(first),
    }
}

fn stands_in(text: &str, name: &str) -> bool {
    let (text, name) = (text.to_lowercase(), name.to_lowercase());
    let is_part = |character: char| character.is_alphanumeric() || "-_".contains(character);
    !name.is_empty()
        && text.match_indices(&name).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + name.len()..]);
            !before.ends_with(is_part) && !after.starts_with(is_part)
        })
}

/// The name as it is connected: exactly, or else whatever its case.
fn find<'a>(connected: &'a [String], name: &str) -> Option<&'a str> {
    let exact = connected.iter().find(|known| *known == name);
    let loose = || connected.iter().find(|known| known.eq_ignore_ascii_case(name));
    exact.or_else(loose).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_first_step_that_knows_a_connected_name_decides() {
        let two = ["prod-eu", "prod-us"];
        let unclear = || Err(Unresolved::Ambiguous(names(&two)));
        for (request, connected, expected) in [
            (json!({}), &[] as &[&str], Err(Unresolved::NoneConnected)),
            (json!({"cluster_id": "x"}), &[], Err(Unresolved::NoneConnected)),
            (json!({}), &["only"], Ok("only")),
            (json!({"cluster_id": "x"}), &["only"], Err(Unresolved::NotConnected("x".into()))),
            (json!({"cluster_id": "ONLY"}), &["only"], Ok("only")),
            (json!({"cluster_id": "a"}), &["A", "a"], Ok("a")),
            (json!({"cluster_id": ""}), &["only"], Ok("only")),
            (json!({}), &two, unclear()),
            (json!({"cluster_id": "prod-us", "payload": {"cluster": "prod-eu"}}), &two, Ok("prod-us")),
            (json!({"payload": {"cluster": "prod-eu"}, "ask": "on prod-us"}), &two, Ok("prod-eu")),
            (json!({"payload": {"cluster_name": "prod-us", "cluster": "prod-eu"}}), &two, Ok("prod-us")),
            (json!({"payload": {"cluster": "gone", "source": "prod-eu"}}), &two, Ok("prod-eu")),
            (json!({"payload": {"labels": {"cluster": "PROD-EU"}}}), &two, Ok("prod-eu")),
            (json!({"payload": {"annotations": {"source": "prod-us"}}}), &two, Ok("prod-us")),
            (
                json!({"payload": {"labels": {"cluster": "prod-eu"}, "source": "prod-us"}}),
                &two,
                Ok("prod-us"),
            ),
            (json!({"payload": {"labels": "prod-eu", "cluster": 7}}), &two, unclear()),
            (json!({"payload": {"cluster": "gone"}}), &["only"], Ok("only")),
            (json!({"ask": "Which pods fail on cluster Prod-US?"}), &two, Ok("prod-us")),
            (json!({"ask": "compare prod-eu and prod-us"}), &two, unclear()),
            (json!({"ask": "why is my-prod-us slow"}), &two, unclear()),
            (json!({"ask": "prod-eu-2 is slow"}), &["prod-eu", "prod-eu-2"], Ok("prod-eu-2")),
            (json!({"ask": "prod eu-2 is slow"}), &["prod", "prod eu-2"], Ok("prod eu-2")),
        ] {
            let about: About = serde_json::from_value(request.clone()).unwrap();
            let seen = resolve(&about, &names(connected));
            assert_eq!(seen, expected.map(str::to_owned), "{request} {connected:?}");
        }
    }

    #[test]
    fn a_key_for_some_clusters_names_no_other() {
        let only = names(&["prod-eu"]);
        assert_eq!(permitted(Some("Prod-EU"), &only), Ok(()));
        assert_eq!(permitted(None, &only), Ok(()));
        assert_eq!(permitted(Some("x"), &[]), Ok(()));
        assert_eq!(permitted(Some("x"), &only), Err(Unresolved::NotPermitted("x".into())));
    }
}
