//! What was fetched in this run: commands, what they printed, and why some could not.

use crate::{
    look::Look,
    table::{self, Row},
    transcript::Returned,
};

/// Everything that was fetched in this run.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) fetched: Vec<Fetched>,
}

/// What came of one look.
#[derive(Debug)]
pub(crate) struct Fetched {
    returned: Returned,
    /// The command, as a person would type it.
    pub(crate) command: String,
    pub(crate) output: String,
    pub(crate) failure: Option<Failure>,
}

/// Why a look failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: Reason,
    /// The line that says so.
    pub(crate) text: String,
}

/// The kinds of failure that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    NotInstalled,
    NoCluster,
    Unreachable,
    Unauthorized,
    Forbidden,
    NotFound,
    Other,
}

impl Evidence {
    pub(crate) fn new(results: Vec<Returned>) -> Self {
        Self { fetched: results.into_iter().map(Fetched::new).collect() }
    }

    /// What came of this look, if it was taken.
    pub(crate) fn of(&self, look: &Look) -> Option<&Fetched> {
        self.fetched.iter().find(|fetched| look.is(&fetched.returned.tool, &fetched.returned.arguments))
    }

    /// What this look showed, if it was taken and worked.
    pub(crate) fn shown(&self, look: &Look) -> Option<&Fetched> {
        self.of(look).filter(|fetched| fetched.failure.is_none())
    }

    /// The rows of all tables that commands with this beginning printed.
    pub(crate) fn rows(&self, command: &str) -> Vec<Row<'_>> {
        let fetched = self.fetched.iter().filter(|fetched| fetched.command.starts_with(command));
        fetched.flat_map(|fetched| table::rows(&fetched.command, &fetched.output)).collect()
    }
}

impl Fetched {
    fn new(returned: Returned) -> Self {
        let command = command_of(&returned);
        let failure = Failure::of(&command, &returned);
        let output = returned.output.replace('\t', "    ");
        Self { command, output, failure, returned }
    }

    /// Lines that hold something.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.output.lines().filter(|line| !line.trim().is_empty())
    }
}

impl Failure {
    fn of(command: &str, returned: &Returned) -> Option<Self> {
        let is_plain_text =
            ["kubectl logs", "kubectl describe"].iter().any(|start| command.starts_with(start));
        let lines = || returned.output.lines().filter(|line| !line.trim().is_empty());
        let told = || {
            let clear = lines().find(|line| Reason::of(line).is_some_and(|reason| reason != Reason::Other));
            clear.or_else(|| lines().find(|line| Reason::of(line).is_some())).or_else(|| lines().next_back())
        };
        let line = match &returned.error {
            // grep found nothing
            Some(_) if command.contains("grep") && returned.output.trim().is_empty() => return None,
            Some(error) => told().or_else(|| error.lines().next()).unwrap_or("failed"),
            None if is_plain_text || returned.output.lines().count() > 2000 => return None,
            None => lines().find(|line| Reason::of(line).is_some())?,
        };
        Some(Self { reason: Reason::of(line).unwrap_or(Reason::Other), text: line.trim().to_owned() })
    }
}

impl Reason {
    /// What a line of output says about a failure; `None` if it is no error message of a tool.
    fn of(line: &str) -> Option<Self> {
        let is = |texts: &[&str]| texts.iter().any(|text| line.contains(text));
        let starts = |texts: &[&str]| texts.iter().any(|text| line.starts_with(text));
        if line.ends_with("not found")
            && is(&["kubectl: ", "command not found", ": not found"])
            && is(&["sh:", "bash"])
        {
            return Some(Self::NotInstalled);
        }
        if starts(&["System has not been booted", "Failed to connect to bus", "dmesg: "]) {
            return Some(Self::Other);
        }
        if !starts(&[
            "error:",
            "Error from server",
            "The connection to the server",
            "Unable to connect",
            "Error: ",
        ]) {
            return None;
        }
        Some(
            if is(&[
                "no configuration has been provided",
                "current-context",
                "localhost:8080",
                "context \"\"",
            ]) {
                Self::NoCluster
            } else if is(&["(Forbidden)"]) {
                Self::Forbidden
            } else if is(&["(NotFound)"]) {
                Self::NotFound
            } else if is(&["Unauthorized", "must be logged in", "provide credentials"]) {
                Self::Unauthorized
            } else if is(&[
                "The connection to the server",
                "Unable to connect",
                "Timeout",
                "timeout",
                "ServiceUnavailable",
            ]) {
                Self::Unreachable
            } else {
                Self::Other
            },
        )
    }
}

/// The shell command of a call; for the tools that are no shell, the one that does the same.
fn command_of(returned: &Returned) -> String {
    let text =
        |key: &str| returned.arguments.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
    let flag = match text("namespace") {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    match returned.tool.as_str() {
        "kubectl_get_by_kind_in_cluster" => format!("kubectl get {} -A -o wide", text("kind")),
        "kubectl_get_by_kind_in_namespace" => format!("kubectl get {}{flag} -o wide", text("kind")),
        "kubectl_get_yaml" => format!("kubectl get {} {}{flag} -o yaml", text("kind"), text("name")),
        "kubectl_describe" => format!("kubectl describe {} {}{flag}", text("kind"), text("name")),
        "kubectl_logs" => format!("kubectl logs {}{flag}", text("pod_name")),
        "kubectl_previous_logs" => format!("kubectl logs {}{flag} --previous", text("pod_name")),
        "kubectl_top_pods" => "kubectl top pods -A".to_owned(),
        "kubectl_top_nodes" => "kubectl top nodes".to_owned(),
        tool => match text("command") {
            "" => tool.to_owned(),
            command => command.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(command: &str, output: &str, error: Option<&str>) -> Option<Reason> {
        let returned = Returned {
            tool: "bash".into(),
            arguments: serde_json::Map::from_iter([("command".to_owned(), command.into())]),
            output: output.into(),
            error: error.map(str::to_owned),
        };
        Fetched::new(returned).failure.map(|failure| failure.reason)
    }

    #[test]
    fn failures_are_told_apart() {
        let failed = Some("Error: Command returned non-zero exit status 1");
        for (output, error, reason) in [
            ("bash: line 1: kubectl: command not found", failed, Reason::NotInstalled),
            ("/bin/sh: 1: kubectl: not found", failed, Reason::NotInstalled),
            (
                "E1 x\nThe connection to the server localhost:8080 was refused - did you",
                failed,
                Reason::NoCluster,
            ),
            ("The connection to the server 10.0.0.1:6443 was refused - did you", None, Reason::Unreachable),
            ("Error from server (Forbidden): pods is forbidden: User \"x\"", None, Reason::Forbidden),
            ("", Some("Tool call rejected: no"), Reason::Other),
        ] {
            assert_eq!(failure("kubectl get pods -A", output, error), Some(reason), "{output}");
        }
        assert_eq!(failure("kubectl logs a -n b", "error: no database", None), None);
        assert_eq!(failure("dmesg | grep -i oom", "", failed), None);
    }
}
