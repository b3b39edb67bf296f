//! Claims that no volume is bound to.

use crate::{
    finding::{Finding, Quote, Severity},
    look::{self, Look},
    rules::Rule,
    snapshot::{Claim, Snapshot},
    table::{self, Row},
    time::Age,
};

pub(crate) const RULE: Rule = Rule { wants, check };

fn unbound<'s, 'a>(snapshot: &'s Snapshot<'a>) -> impl Iterator<Item = &'s Claim<'a>> {
    let is_old = |claim: &&Claim<'a>| claim.age.is_none_or(|age| age > Age(60));
    snapshot.claims.iter().filter(|claim| claim.status != "Bound" && claim.status != "Terminating").filter(is_old)
}

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    unbound(snapshot).next().map(|_| look::storage_classes()).into_iter().collect()
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    let fetched = snapshot.evidence.shown(&look::storage_classes());
    let classes = fetched.map(|fetched| table::rows(&fetched.command, &fetched.output));
    unbound(snapshot).filter_map(|claim| explain(snapshot, claim, classes.as_deref())).collect()
}

fn explain(snapshot: &Snapshot<'_>, claim: &Claim<'_>, classes: Option<&[Row<'_>]>) -> Option<Finding> {
    let warnings: Vec<_> = snapshot.warnings(&claim.object).collect();
    // the default class's name has a mark after it
    let name_of = |row: &Row<'_>| row.cell("NAME").and_then(|name| name.split_whitespace().next().map(str::to_owned));
    let own = classes.and_then(|classes| classes.iter().find(|row| name_of(row).as_deref() == claim.class));
    let waits_for_pod = own.is_some_and(|row| row.cell("VOLUMEBINDINGMODE") == Some("WaitForFirstConsumer"));
    if waits_for_pod && warnings.is_empty() && claim.status == "Pending" {
        return None;
    }
    let object = &claim.object;
    let (what, cause) = match (claim.class, classes) {
        (Some(class), Some(classes)) if own.is_none() => {
            let known: Vec<String> = classes.iter().filter_map(name_of).map(|name| format!("`{name}`")).collect();
            let known = if known.is_empty() { "none at all".to_owned() } else { known.join(", ") };
            (
                format!("its storage class `{class}` does not exist"),
                format!("Nothing provisions volumes for `{class}`: the cluster's storage classes are {known}. \
                         The class of a claim can not be changed; the claim has to be made again."),
            )
        }
        (None, _) => (
            "it names no storage class and was given none".to_owned(),
            "There is no default storage class that would provision a volume, and no matching volume exists.".to_owned(),
        ),
        (Some(_), _) => match warnings.first() {
            Some(event) => (
                format!("{}: {}", event.reason, event.message.trim_end_matches('.')),
                "The provisioner reports why it makes no volume; the warning is quoted above.".to_owned(),
            ),
            None => (
                "no volume was provisioned for it".to_owned(),
                "The provisioner of its storage class may not be running; nothing it wrote is left to see.".to_owned(),
            ),
        },
    };
    let flag = object.flag();
    let finding = Finding::new(Severity::Outage, object.clone(), format!("is {}: {what}", claim.status))
        .because(cause)
        .quoting(Quote::rows([&claim.row]))
        .quoting(Quote::rows(warnings.iter().take(2).map(|event| &event.row)))
        .quoting(classes.filter(|_| own.is_none()).and_then(Quote::rows));
    Some(
        finding
            .next("See the claim and its events", format!("kubectl describe pvc {}{flag}", object.name))
            .next(
                "Save the claim, set a storage class that exists, and make it again (it has no volume to lose)",
                format!("kubectl get pvc {}{flag} -o yaml > {}.yaml", object.name, object.name),
            ),
    )
}
