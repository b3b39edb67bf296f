//! `fetch_pod_logs`: the logs of a pod's present and previous containers, in time order, cut to a window and to
//! lines that match.

use std::{collections::HashSet, time::Duration};

use jiff::{SignedDuration, Timestamp};
use regex::{Regex, RegexBuilder};

use super::{
    Arguments, Plan, Presentation, Settings, Tool, Toolset,
    kubectl::{arguments, command, name, run_all},
    logs::{ALL_CONTAINERS, PREFIX},
    parameters::Parameter,
    present,
};
use crate::process::{Outcome, Spec};

const LIMIT: i64 = 100;
/// How far back is looked when nothing is said.
const WINDOW: Duration = Duration::from_secs(7 * 24 * 60 * 60);

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "fetch_pod_logs",
    toolset: Toolset::KubernetesLogs,
    needs_jq: false,
    description: "Fetches the logs of a pod, of its present containers and of those before their last restart, in \
                  the order of time. Start here for logs; filter rather than fetch all.",
    parameters: &[
        Parameter::text("pod_name", "Name of the pod."),
        Parameter::text("namespace", "Namespace of the pod."),
        Parameter::text(
            "start_time",
            "From when: RFC 3339, or a negative number of seconds before `end_time`. 7 days unless given.",
        )
        .optional(),
        Parameter::text("end_time", "Until when: RFC 3339, or a negative number of seconds before now.")
            .optional(),
        Parameter::integer("limit", "At most this many lines, the last ones. 100 unless given.").optional(),
        Parameter::text("filter", "Only lines that match this regular expression; case does not matter.")
            .optional(),
        Parameter::text("exclude_filter", "No lines that match this regular expression.").optional(),
    ],
    plan,
}];

/// A regular expression; a text that is none stands for itself.
#[derive(Debug)]
pub(super) struct Pattern(Option<Regex>);

impl Pattern {
    /// An empty text matches everything.
    pub(super) fn new(text: &str) -> Self {
        let build =
            |text: &str| RegexBuilder::new(text).case_insensitive(true).size_limit(1 << 20).build().ok();
        Self((!text.is_empty()).then(|| build(text).or_else(|| build(&regex::escape(text)))).flatten())
    }

    pub(super) fn matches(&self, line: &str) -> bool {
        self.0.as_ref().is_none_or(|regex| regex.is_match(line))
    }

    fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// Which lines are wanted.
#[derive(Debug)]
struct Query {
    start: Timestamp,
    end: Option<Timestamp>,
    limit: usize,
    only: Pattern,
    without: Pattern,
}

impl Query {
    fn read(arguments: &Arguments, now: Timestamp) -> Result<Self, String> {
        let end = moment(arguments.text("end_time"), now, "end_time")?;
        let start = moment(arguments.text("start_time"), end.unwrap_or(now), "start_time")?;
        let window = SignedDuration::try_from(WINDOW).map_err(|error| error.to_string())?;
        let limit = arguments.integer("limit").unwrap_or(LIMIT);
        Ok(Self {
            start: start.unwrap_or(end.unwrap_or(now) - window),
            end,
            limit: usize::try_from(limit.max(1)).unwrap_or(usize::MAX),
            only: Pattern::new(arguments.text("filter")),
            without: Pattern::new(arguments.text("exclude_filter")),
        })
    }

    fn wants(&self, line: &Line<'_>) -> bool {
        line.at.is_none_or(|at| at >= self.start && self.end.is_none_or(|end| at <= end))
            && self.only.matches(line.text)
            && (self.without.is_empty() || !self.without.matches(line.text))
    }
}

/// RFC 3339, or seconds relative to another moment.
fn moment(text: &str, relative_to: Timestamp, parameter: &str) -> Result<Option<Timestamp>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let moment = match text.parse::<i64>() {
        Ok(seconds) => relative_to.checked_add(SignedDuration::from_secs(-seconds.saturating_abs())).ok(),
        Err(_) => text.parse().ok(),
    };
    match moment {
        Some(moment) => Ok(Some(moment)),
        None => Err(format!("the parameter `{parameter}` must be RFC 3339 or a negative number of seconds")),
    }
}

fn plan(settings: &Settings, given: &Arguments) -> Result<Plan, String> {
    let query = Query::read(given, Timestamp::now())?;
    let (pod, namespace) = (name(given, "pod_name")?.to_owned(), name(given, "namespace")?.to_owned());
    let since = format!("--since-time={:.0}", query.start);
    // When every line is wanted, the last ones are enough.
    let every = query.end.is_none() && query.only.is_empty() && query.without.is_empty();
    let tail = if every { format!("--tail={}", query.limit) } else { "--tail=-1".to_owned() };
    let place = ["logs", &pod, "-n", &namespace, "--timestamps", &since, &tail];
    let current = [&place[..], &ALL_CONTAINERS].concat();
    let previous = [&current[..], &["--previous"]].concat();
    let specs = [&current, &previous].map(|own| Spec::program(arguments(settings, own))).to_vec();
    let shown = command(&current);
    Ok(run_all(settings, shown.clone(), specs, move |outcomes| show(&shown, &query, outcomes)))
}

/// A line as kubectl writes it: `[pod/POD/CONTAINER] TIME TEXT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Line<'a> {
    at: Option<Timestamp>,
    container: &'a str,
    text: &'a str,
}

impl<'a> Line<'a> {
    /// `None` for what is no line of a log, such as kubectl's own messages.
    fn read(line: &'a str) -> Option<Self> {
        let (source, rest) = line.strip_prefix(PREFIX)?.split_once("] ")?;
        let container = source.rsplit('/').next().unwrap_or_default();
        Some(match rest.split_once(' ').and_then(|(time, text)| Some((time.parse().ok()?, text))) {
            Some((at, text)) => Self { at: Some(at), container, text },
            None => Self { at: rest.parse().ok(), container, text: rest },
        })
    }
}

fn show(shown: &str, query: &Query, outcomes: &[Outcome]) -> Presentation {
    let failures: Vec<_> = outcomes.iter().map(|outcome| present::failure(shown, outcome)).collect();
    // A pod that never restarted has no previous log.
    if let Some(error) =
        failures.iter().cloned().collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().next())
    {
        return Presentation::Error { data: outcomes.first().map(present::both).unwrap_or_default(), error };
    }
    let logs: Vec<_> = outcomes.iter().rev().map(|outcome| outcome.stdout.text()).collect();
    let omitted = outcomes.iter().map(|outcome| outcome.stdout.omitted()).sum();
    match select(query, &logs, omitted) {
        // Why the present containers have none.
        None => Presentation::NoData(logs.into_iter().next_back().unwrap_or_default().trim_end().to_owned()),
        Some(text) => Presentation::Success(text),
    }
}

/// Puts the wanted lines into order and says what they are of.
fn select(query: &Query, logs: &[String], omitted: u64) -> Option<String> {
    let mut lines: Vec<_> = logs.iter().flat_map(|log| log.lines()).filter_map(Line::read).collect();
    let total = lines.len();
    // After a crash, until it is restarted, the last container is both the present and the previous one.
    let mut seen = HashSet::new();
    lines.retain(|line| query.wants(line) && (line.at.is_none() || seen.insert(*line)));
    if lines.is_empty() {
        return None;
    }
    lines.sort_by_key(|line| line.at);
    let matching = lines.len();
    let shown = &lines[matching.saturating_sub(query.limit)..];
    let several = shown.iter().any(|line| line.container != shown[0].container);
    let mut text = String::new();
    for line in shown {
        if several {
            text.push_str(line.container);
            text.push_str(": ");
        }
        text.push_str(line.text);
        text.push('\n');
    }
    let span = |line: Option<&Line<'_>>| {
        line.and_then(|line| line.at).map_or_else(|| "?".to_owned(), |at| format!("{at:.0}"))
    };
    text.push_str(&format!(
        "\n--- {} of {matching} matching lines ({total} lines in all), from {} to {}; limit {}",
        shown.len(),
        span(shown.first()),
        span(shown.last()),
        query.limit,
    ));
    if omitted > 0 {
        text.push_str(&format!("; {omitted} bytes between the oldest and the newest were not looked at"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(json: &str) -> Query {
        let arguments = Arguments::parse(json, TOOLS[0].parameters).unwrap();
        Query::read(&arguments, "2026-01-01T12:00:00Z".parse().unwrap()).unwrap()
    }

    const CURRENT: &str =
        "[pod/p/app] 2026-01-01T11:00:02Z error: db (timeout\n[pod/p/app] 2026-01-01T11:00:04Z ok\n";
    const PREVIOUS: &str = "[pod/p/side] 2026-01-01T11:00:03Z Error again\nerror: app has no log\n";

    fn selected(json: &str) -> Option<Vec<String>> {
        let json = format!(r#"{{"pod_name": "p", "namespace": "n", {json}}}"#);
        let text = select(&query(&json), &[CURRENT.to_owned(), PREVIOUS.to_owned()], 0)?;
        Some(text.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    #[test]
    fn lines_are_in_time_order_with_their_container() {
        let lines = selected(r#""limit": 10"#).unwrap();
        assert_eq!(lines, ["app: error: db (timeout", "side: Error again", "app: ok"]);
    }

    #[test]
    fn a_log_that_is_also_the_previous_one_is_shown_once() {
        let logs = [CURRENT.to_owned(), CURRENT.to_owned()];
        let text = select(&query(r#"{"pod_name": "p", "namespace": "n"}"#), &logs, 0).unwrap();
        assert_eq!(text.lines().take_while(|line| !line.is_empty()).count(), 2);
    }

    #[test]
    fn filters_are_regular_expressions_or_else_literal() {
        assert_eq!(selected(r#""filter": "^error""#).unwrap().len(), 2);
        assert_eq!(selected(r#""filter": "(timeout""#).unwrap(), ["error: db (timeout"]);
        assert_eq!(selected(r#""exclude_filter": "error""#).unwrap(), ["ok"]);
        assert_eq!(selected(r#""filter": "absent""#), None);
    }

    #[test]
    fn times_and_limit_cut() {
        assert_eq!(selected(r#""limit": 1"#).unwrap(), ["ok"]);
        assert_eq!(selected(r#""end_time": "2026-01-01T11:00:02Z""#).unwrap(), ["error: db (timeout"]);
        assert_eq!(selected(r#""start_time": "-3597""#).unwrap(), ["side: Error again", "app: ok"]);
        assert_eq!(selected(r#""start_time": "-60""#), None);
    }

    #[test]
    fn a_time_that_is_none_names_its_parameter() {
        let arguments = r#"{"pod_name": "p", "namespace": "n", "start_time": "noon"}"#;
        let arguments = Arguments::parse(arguments, TOOLS[0].parameters).unwrap();
        assert!(Query::read(&arguments, Timestamp::UNIX_EPOCH).unwrap_err().contains("start_time"));
    }
}
