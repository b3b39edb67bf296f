//! What could not be looked at, and why.

use crate::{
    case::{Access, Case},
    evidence::{Failure, Fetched, Reason},
    quote,
};

/// What could not be looked at, and why: commands with one reason together.
pub(crate) fn section(case: &Case<'_>, failed: &[&Fetched]) -> String {
    let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
    if let Access::Closed(failure) = &case.cluster {
        lines.push((no_cluster_line(failure), Vec::new()));
    }
    for fetched in failed {
        let Some(failure) = &fetched.failure else { continue };
        let is_cluster = fetched.command.starts_with("kubectl");
        if (is_cluster && matches!(case.cluster, Access::Closed(_))) || is_expected(fetched) {
            continue;
        }
        let why = quote::plain(&failure.text);
        match lines.iter_mut().find(|(line, _)| *line == why) {
            Some((_, commands)) => commands.push(&fetched.command),
            None => lines.push((why, vec![&fetched.command])),
        }
    }
    let lines: Vec<String> = lines
        .into_iter()
        .map(|(why, commands)| match commands.as_slice() {
            [] => format!("- {why}"),
            [one] => format!("- {}: {why}", quote::inline(one)),
            [one, rest @ ..] => format!("- {} and {} more: {why}", quote::inline(one), rest.len()),
        })
        .collect();
    if lines.is_empty() { String::new() } else { format!("## What I could not see\n\n{}", lines.join("\n")) }
}

/// Failures that tell something, or whose place another look took.
fn is_expected(fetched: &Fetched) -> bool {
    let is_replaced = fetched.command.contains(" --previous") && fetched.command.starts_with("kubectl logs");
    // it fails for a unit that is not active
    is_replaced || (fetched.command.starts_with("systemctl status") && !fetched.output.is_empty())
}

/// One sentence on why there is no cluster to look at.
pub(crate) fn no_cluster_line(failure: &Failure) -> String {
    let said = quote::plain(&failure.text);
    match failure.reason {
        Reason::NotInstalled => "No Kubernetes cluster: `kubectl` is not installed here.".to_owned(),
        Reason::NoCluster => "No Kubernetes cluster: `kubectl` has none configured.".to_owned(),
        Reason::Unreachable => {
            format!("The Kubernetes cluster that `kubectl` is configured for does not answer: {said}.")
        }
        Reason::Unauthorized => {
            format!("The Kubernetes cluster does not accept the credentials of `kubectl`: {said}.")
        }
        Reason::Forbidden | Reason::NotFound | Reason::Other => format!("`kubectl` did not work: {said}."),
    }
}

/// The whole answer, where a wish is for a cluster that is not there.
pub(crate) fn no_cluster(failure: &Failure) -> String {
    format!("**{}**", no_cluster_line(failure))
}
