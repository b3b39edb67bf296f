//! Secrets, ConfigMaps or keys in them that a pod needs and that are not there.

use crate::{
    finding::{Finding, Quote},
    look::{self, Look},
    name::{Kind, Name, Object},
    rules::{Rule, pod},
    similar,
    snapshot::{Group, Snapshot},
    table,
};

pub(crate) const RULE: Rule = Rule { wants, check };

/// What is missing: an object, or a key in one.
struct Missing<'a> {
    object: Object,
    key: Option<&'a str>,
    message: &'a str,
}

/// Reads the kubelet's words: `secret "x" not found`, `couldn't find key K in ConfigMap ns/x`,
/// `references non-existent config key: K`.
fn read<'a>(message: &'a str, namespace: &Name) -> Option<Missing<'a>> {
    if let Some((_, rest)) = message.split_once("couldn't find key ") {
        let (key, rest) = rest.split_once(" in ")?;
        let (kind, rest) = rest.split_once(' ')?;
        let path = rest.split_whitespace().next()?.trim_end_matches(['.', ',']);
        let name = Name::parse(path.rsplit('/').next()?)?;
        let object = Object::new(Kind::parse(&kind.to_lowercase())?, namespace, &name);
        return Some(Missing { object, key: Some(key), message });
    }
    [("secret \"", Kind::Secret), ("configmap \"", Kind::ConfigMap)].iter().find_map(|(start, kind)| {
        let (name, rest) = message.split_once(start)?.1.split_once('"')?;
        let object = Object::new(*kind, namespace, &Name::parse(name)?);
        rest.trim_start().starts_with("not found").then_some(Missing { object, key: None, message })
    })
}

fn missing<'s>(snapshot: &'s Snapshot<'_>, group: &'s Group<'_>) -> Option<Missing<'s>> {
    let namespace = group.namespace()?;
    let states = pod::containers(group).filter_map(|container| container.status.state.waiting.as_ref());
    states
        .map(|waiting| waiting.message.as_str())
        .chain(pod::warnings(snapshot, group).into_iter().map(|event| event.message))
        .find_map(|message| read(message, namespace))
}

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    let found = snapshot.groups.iter().filter_map(|group| missing(snapshot, group));
    found.filter_map(|missing| look_for(&missing)).collect()
}

fn look_for(missing: &Missing<'_>) -> Option<Look> {
    let namespace = missing.object.namespace.as_ref()?;
    Some(match (missing.key, missing.object.kind) {
        (Some(_), Kind::ConfigMap) => look::config_keys(namespace, &missing.object.name),
        (Some(_), _) => look::describe(&missing.object),
        (None, kind) => look::names(kind, namespace),
    })
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    snapshot.groups.iter().filter_map(|group| explain(snapshot, group)).collect()
}

fn explain(snapshot: &Snapshot<'_>, group: &Group<'_>) -> Option<Finding> {
    let missing = missing(snapshot, group)?;
    let object = &missing.object;
    let fetched = look_for(&missing).and_then(|look| snapshot.evidence.shown(&look));
    let known: Option<Vec<&str>> = fetched.map(|fetched| match (missing.key, object.kind) {
        (Some(_), Kind::ConfigMap) => fetched.lines().map(str::trim).collect(),
        (Some(_), _) => keys_described(fetched.lines()),
        (None, _) => {
            table::rows(&fetched.command, &fetched.output).iter().filter_map(|row| row.cell("NAME")).collect()
        }
    });
    let wanted = missing.key.unwrap_or(object.name.as_str());
    let word = if object.kind == Kind::Secret { "Secret" } else { "ConfigMap" };
    let what = match missing.key {
        Some(key) => format!("can not start: {word} `{}` has no key `{key}`", object.name),
        None => format!("can not start: {word} `{}` does not exist", object.name),
    };
    let things = if missing.key.is_some() { "keys".to_owned() } else { format!("{word}s") };
    let cause = match &known {
        Some(known) if known.contains(&wanted) => {
            format!("`{wanted}` is there now; the kubelet tries again within a minute or two.")
        }
        Some(known) => match similar::closest(wanted, known) {
            Some(near) => format!("There is a similar name, `{near}`: probably one of the two is a typing mistake or was renamed."),
            None if known.is_empty() => format!("There are no {things} at all there: it was probably never created here."),
            None => {
                let list: Vec<String> = known.iter().take(8).map(|name| format!("`{name}`")).collect();
                format!("No similar name exists; the {things} there are {}. It was probably never created here.", list.join(", "))
            }
        },
        None => format!("I could not list the {things} there, so I can not say whether it exists under another name."),
    };
    let stuck = pod::containers(group).find(|container| {
        container.status.state.waiting.as_ref().is_some_and(|waiting| waiting.message == missing.message)
    });
    let events: Vec<_> =
        pod::warnings(snapshot, group).into_iter().filter(|event| event.message == missing.message).collect();
    let flag = object.flag();
    let create = match (missing.key, object.kind) {
        (Some(key), Kind::ConfigMap) => {
            format!("kubectl patch configmap {}{flag} --type=merge -p '{{\"data\":{{\"{key}\":\"VALUE\"}}}}'", object.name)
        }
        (Some(key), _) => {
            format!("kubectl patch secret {}{flag} --type=merge -p '{{\"stringData\":{{\"{key}\":\"VALUE\"}}}}'", object.name)
        }
        (None, Kind::Secret) => format!("kubectl create secret generic {}{flag} --from-literal=KEY=VALUE", object.name),
        (None, _) => format!("kubectl create configmap {}{flag} --from-literal=KEY=VALUE", object.name),
    };
    let mut finding = pod::finding(snapshot, group, &what).because(cause);
    finding = finding.quoting(match stuck {
        Some(container) => pod::state_quote(group, container),
        None => pod::event_quote(&events),
    });
    if let Some(fetched) = fetched.filter(|_| object.kind == Kind::ConfigMap) {
        finding = finding.quoting([Quote::of(fetched, fetched.lines().take(12))]);
    }
    Some(
        finding
            .next("See where it is referred to", format!("kubectl get {}{flag} -o yaml | grep -n -B 4 '{}'", pod::owner_path(group), object.name))
            .next(format!("Create what is missing, or correct the reference (`kubectl edit {}{flag}`)", pod::owner_path(group)), create),
    )
}

/// The keys in `kubectl describe secret`: `password:  12 bytes`.
fn keys_described<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<&'l str> {
    lines.filter(|line| line.ends_with(" bytes")).filter_map(|line| line.split_once(':')).map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubelets_words_are_understood() {
        let here = Name::parse("ns").expect("a name");
        for (message, kind, name, key) in [
            ("secret \"smtp\" not found", Kind::Secret, "smtp", None),
            ("MountVolume.SetUp failed for volume \"v\" : configmap \"c\" not found", Kind::ConfigMap, "c", None),
            ("couldn't find key TOPIC in ConfigMap ns/push", Kind::ConfigMap, "push", Some("TOPIC")),
            ("Error: couldn't find key k in Secret ns/s", Kind::Secret, "s", Some("k")),
        ] {
            let read = read(message, &here).expect(message);
            assert_eq!((read.object.kind, read.object.name.as_str(), read.key), (kind, name, key));
        }
        assert!(read("Back-off restarting failed container", &here).is_none());
    }
}
