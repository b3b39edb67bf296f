//! What rules about containers that end share: why, from the exit code and the log, and what to do.

use crate::{
    finding::Finding,
    logs::{self, ClueKind},
    manifest::Terminated,
    name::Object,
    quote,
    rules::pod::{self, Container},
    snapshot::{Group, Snapshot},
};

/// Completes a finding about a container that ended: evidence, cause, what it blames, next steps.
pub(super) fn explain(
    snapshot: &Snapshot<'_>,
    group: &Group<'_>,
    container: Container<'_>,
    mut finding: Finding,
) -> Finding {
    let name = &container.status.name;
    let log = pod::log(snapshot, group, container);
    let lines: Vec<&str> = log.map(|log| log.lines().collect()).unwrap_or_default();
    let code = container.status.ended().map(meaning);
    let mut cause = match (logs::clue(&lines), &code) {
        (Some(clue), _) => {
            let service =
                service_in(snapshot, group, clue.line).filter(|_| clue.kind == ClueKind::Unreachable);
            let mut cause = format!("{}: {}.", said(clue.kind), quote::inline(clue.line));
            if let Some(service) = service {
                cause.push_str(&format!(" It means {service}."));
                finding = finding.blaming([service]);
            }
            cause
        }
        (None, Some(code)) => code.clone(),
        (None, None) => "Its log gives no reason.".to_owned(),
    };
    if log.is_none() {
        cause.push_str(" Its log could not be read or is empty.");
    }
    let flag = group.owner.flag();
    let pod = group.sample_object().name;
    finding = finding
        .because(cause)
        .quoting(pod::state_quote(group, container))
        .quoting(log.map(pod::log_quote))
        .next("Read more of the log", format!("kubectl logs {pod}{flag} -c {name} --previous --tail=500"));
    if pod::is_workload(group) {
        let owner = pod::owner_path(group);
        finding = finding
            .next(
                "See its settings (environment, arguments, mounts)",
                format!("kubectl get {owner}{flag} -o yaml"),
            )
            .next(
                "If it began with a rollout, compare revisions, then `kubectl rollout undo`",
                format!("kubectl rollout history {owner}{flag}"),
            );
    }
    finding
}

/// What the log of a container gives as the reason, as the end of a clause.
pub(super) fn last_words(snapshot: &Snapshot<'_>, group: &Group<'_>, container: Container<'_>) -> String {
    let log = pod::log(snapshot, group, container);
    let lines: Vec<&str> = log.map(|log| log.lines().collect()).unwrap_or_default();
    let clue = logs::clue(&lines).map(|clue| quote::inline(logs::message(clue.line)));
    clue.map_or_else(String::new, |words| format!(", saying {words}"))
}

fn said(kind: ClueKind) -> &'static str {
    match kind {
        ClueKind::Unreachable => "It can not reach something that it needs",
        ClueKind::Setting => "A setting is missing or wrong",
        ClueKind::Authentication => {
            "It is not let in by something that it needs: wrong or missing credentials"
        }
        ClueKind::Permission => "It is not permitted something that it needs",
        ClueKind::MissingFile => "A file or program that it needs is not there",
        ClueKind::AddressInUse => "Its port is taken already",
        ClueKind::OutOfMemory => "It runs out of memory by its own account",
        ClueKind::DiskFull => "Its disk is full",
        ClueKind::Failure => "Its log ends with a failure",
    }
}

/// The service that a line of a log names.
fn service_in(snapshot: &Snapshot<'_>, group: &Group<'_>, line: &str) -> Option<Object> {
    let namespace = group.namespace()?;
    logs::hosts(line)
        .find_map(|host| snapshot.service_named(host, namespace))
        .map(|service| service.object.clone())
}

/// What an exit code means.
fn meaning(end: &Terminated) -> String {
    let code = end.exit_code;
    let means = match code {
        0 => "the program ended without an error; a program that is to be restarted for ever must not end",
        126 => "the command was found but could not be executed",
        127 => "the command was not found in the image",
        134 => "the program aborted (SIGABRT)",
        137 => "the program was killed (SIGKILL), with no word of the kernel that it was for memory",
        139 => "the program crashed with an invalid memory access (SIGSEGV)",
        143 => "the program was asked to stop (SIGTERM)",
        _ => "the program itself reports a failure",
    };
    format!("Exit code {code}: {means}.")
}
