//! Jobs that failed.

use crate::{
    finding::{Finding, Quote, Severity},
    logs,
    look::{self, Look},

    quote,
    rules::{Rule, pod},
    snapshot::{Job, Pod, Snapshot},
};

pub(crate) const RULE: Rule = Rule { wants, check };

/// Jobs without success whose later runs, if a schedule makes any, had none either.
fn suspects<'s, 'a>(snapshot: &'s Snapshot<'a>) -> impl Iterator<Item = &'s Job<'a>> {
    snapshot.jobs.iter().filter(|job| !job.is_complete).filter(|job| {
        let series = series(job);
        !snapshot.jobs.iter().any(|other| {
            other.is_complete
                && series.is_some()
                && self::series(other) == series
                && other.object.namespace == job.object.namespace
                && other.object.name > job.object.name
        })
    })
}

/// The name of the schedule that made a job: `backup` of `backup-29312400`.
fn series<'j>(job: &'j Job<'_>) -> Option<&'j str> {
    let (series, number) = job.object.name.as_str().rsplit_once('-')?;
    (number.len() >= 8 && number.chars().all(|c| c.is_ascii_digit())).then_some(series)
}

/// The newest failed pod of a job.
fn failed_pod<'s, 'a>(snapshot: &'s Snapshot<'a>, job: &Job<'_>) -> Option<&'s Pod<'a>> {
    failed_pods(snapshot, job).min_by_key(|pod| (pod.age, pod.name.clone()))
}

fn failed_pods<'s, 'a>(snapshot: &'s Snapshot<'a>, job: &Job<'_>) -> impl Iterator<Item = &'s Pod<'a>> {
    snapshot.pods.iter().filter(|pod| {
        matches!(pod.status, "Error" | "OOMKilled" | "DeadlineExceeded")
            && snapshot.owner_of(&pod.namespace, &pod.name).as_ref() == Some(&job.object)
    })
}

fn log_look(snapshot: &Snapshot<'_>, job: &Job<'_>) -> Option<Look> {
    let pod = failed_pod(snapshot, job)?;
    Some(look::logs(&pod.namespace, &pod.name, None, false))
}

fn wants(snapshot: &Snapshot<'_>) -> Vec<Look> {
    let looks = |job: &Job<'_>| [Some(look::conditions(&job.object)), log_look(snapshot, job)];
    suspects(snapshot).take(10).flat_map(|job| looks(job).into_iter().flatten()).collect()
}

fn check(snapshot: &Snapshot<'_>) -> Vec<Finding> {
    suspects(snapshot).filter_map(|job| explain(snapshot, job)).collect()
}

fn explain(snapshot: &Snapshot<'_>, job: &Job<'_>) -> Option<Finding> {
    let object = &job.object;
    let conditions = snapshot.evidence.shown(&look::conditions(object));
    let failed = conditions.and_then(|fetched| fetched.lines().find(|line| line.starts_with("Failed=True")));
    let ends = failed_pods(snapshot, job).count();
    let log = log_look(snapshot, job).and_then(|look| snapshot.evidence.shown(&look));
    let lines: Vec<&str> = log.map(|log| log.lines().collect()).unwrap_or_default();
    let clue = logs::clue(&lines).map(|clue| quote::inline(logs::message(clue.line)));
    let saying = clue.as_ref().map_or_else(String::new, |words| format!(", saying {words}"));
    let what = match failed.and_then(|line| line.split_once(' ')) {
        Some((_, why)) => format!("has failed{saying} ({})", quote::plain(why)),
        None if ends > 0 => format!("has not succeeded yet: {ends} of its pods ended with an error{saying}"),
        None => return None,
    };
    let cause = match clue {
        Some(words) => format!("The log of its last pod says {words}."),
        None if lines.is_empty() => "The log of its pods is empty or no longer there.".to_owned(),
        None => "The log of its last pod, quoted above, does not say why in words that I know.".to_owned(),
    };
    let flag = object.flag();
    let pods = failed_pods(snapshot, job).map(|pod| &pod.row).take(3);
    Some(
        Finding::new(Severity::Degraded, object.clone(), what)
            .covering(failed_pods(snapshot, job).map(Pod::object))
            .because(cause)
            .quoting(conditions.filter(|_| failed.is_some()).map(|fetched| Quote::of(fetched, fetched.lines())))
            .quoting(Quote::rows([&job.row]).filter(|_| failed.is_none()))
            .quoting(Quote::rows(pods))
            .quoting(log.filter(|_| !lines.is_empty()).map(pod::log_quote))
            .next("See the job and its events", format!("kubectl describe job {}{flag}", object.name))
            .next(
                "Once the cause is gone, run it again: save it, delete it, create it without its old status",
                format!("kubectl get job {}{flag} -o yaml > {}.yaml", object.name, object.name),
            ),
    )

}
