//! Alerts of a configured Prometheus or Alertmanager: where they are asked for, and what they become.
//!
//! * `prometheus`, `alertmanager`: what each of them knows
//! * `show`: alerts as text

mod alertmanager;
mod prometheus;
mod show;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::source::Source;

/// How long a source may take.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Where alerts come from. At least one of them is there.
#[derive(Clone, Debug)]
pub(crate) struct Alerts {
    prometheus: Option<Source>,
    alertmanager: Option<Source>,
}

/// Whose alerts are wanted, and how far back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Empty: any.
    pub(crate) namespace: String,
    /// Of a workload or one of its parts. Empty: any.
    pub(crate) name: String,
    pub(crate) hours: u32,
}

/// An alert, and when it was firing.
#[derive(Clone, Debug, PartialEq)]
struct Alert {
    name: String,
    /// Sorted, without the alert's name.
    labels: Vec<(String, String)>,
    summary: Option<String>,
    periods: Vec<Period>,
}

/// From when to when an alert fired; without an end it still does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Period {
    from: Timestamp,
    to: Option<Timestamp>,
}

impl Alerts {
    /// `None` if there is no source.
    pub(crate) fn new(prometheus: Option<Source>, alertmanager: Option<Source>) -> Option<Self> {
        let any = prometheus.is_some() || alertmanager.is_some();
        any.then_some(Self { prometheus, alertmanager })
    }

    /// The Prometheus among the sources.
    pub(crate) fn prometheus(&self) -> Option<&Source> {
        self.prometheus.as_ref()
    }

    /// What the sources know, as text; the error says why none of them answered.
    pub(crate) async fn history(&self, wanted: &Wanted) -> Result<String, String> {
        let now = Timestamp::now();
        let since = now - SignedDuration::from_hours(wanted.hours.into());
        let (prometheus, alertmanager) = tokio::join!(
            async { Some(prometheus::history(self.prometheus.as_ref()?, wanted, since, now).await) },
            async { Some(alertmanager::history(self.alertmanager.as_ref()?, wanted, since).await) },
        );
        let answers = [("Prometheus", prometheus), ("Alertmanager", alertmanager)];
        let mut texts = Vec::new();
        let mut failures = Vec::new();
        for (source, answer) in answers {
            match answer {
                Some(Ok(alerts)) => texts.push(show::list(source, alerts, wanted)),
                Some(Err(why)) => failures.push(format!("{source} was asked and gave nothing: {why}")),
                None => {}
            }
        }
        if texts.is_empty() {
            return Err(failures.join("\n"));
        }
        texts.extend(failures);
        Ok(texts.join("\n\n"))
    }
}
