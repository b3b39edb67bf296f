//! What is said of a turn that failed: a stable code, and as much as the client wants to hear.

use std::time::Duration;

use domain::FailureCode;
use serde_json::{Map, Value};
use wire::session::Failure;

use crate::runs::{OverBudget, Refusal};

/// How much clients of sessions are told of an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disclosure {
    /// That there was one.
    Generic,
    /// Which one.
    #[default]
    Standard,
    /// And what was said of it, by a provider for example.
    Detailed,
}

impl Disclosure {
    const ALL: [Self; 3] = [Self::Generic, Self::Standard, Self::Detailed];

    /// The one of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|disclosure| disclosure.name() == name)
    }

    /// What a client hears that asks for so much: less than this can be had, more cannot.
    pub(super) fn narrowed(self, asked: Option<&str>) -> Self {
        asked.and_then(Self::named).map_or(self, |asked| asked.min(self))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Standard => "standard",
            Self::Detailed => "detailed",
        }
    }
}

/// Why a turn failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cause {
    RateLimited { retry_after: Option<Duration> },
    QuotaExhausted,
    OverBudget(OverBudget),
    Misconfigured,
    Unavailable,
    TooLarge,
    NoModel,
    NoTools,
    Other,
}

impl From<FailureCode> for Cause {
    fn from(code: FailureCode) -> Self {
        match code {
            FailureCode::RateLimited { retry_after } => Self::RateLimited { retry_after },
            FailureCode::QuotaExhausted => Self::QuotaExhausted,
            FailureCode::Unauthenticated => Self::Misconfigured,
            FailureCode::ModelUnavailable => Self::Unavailable,
            FailureCode::ContextTooLong => Self::TooLarge,
            FailureCode::Rejected
            | FailureCode::MalformedReply
            | FailureCode::Deadline
            | FailureCode::Internal => Self::Other,
        }
    }
}

impl From<&Refusal> for Cause {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Model(_) => Self::NoModel,
            Refusal::OverBudget(over) => Self::OverBudget(*over),
            Refusal::Executor(_)
            | Refusal::Cluster(_)
            | Refusal::TooMany(_)
            | Refusal::ShuttingDown
            | Refusal::Log(_) => Self::NoTools,
            Refusal::Blind { .. }
            | Refusal::ClientTool(_)
            | Refusal::Unnamed(_)
            | Refusal::NotPermitted(_)
            | Refusal::NothingToDo
            | Refusal::OtherRequest => Self::Other,
        }
    }
}

/// Whom the turn asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    pub model: &'a str,
    pub provider: Option<&'a str>,
}

fn field(name: &str, value: impl Into<Value>) -> (String, Value) {
    (name.to_owned(), value.into())
}

impl Cause {
    fn code(self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "provider_rate_limited",
            Self::QuotaExhausted => "provider_quota_exhausted",
            Self::OverBudget(_) => "budget_exhausted",
            Self::Misconfigured => "provider_misconfigured",
            Self::Unavailable => "provider_unavailable",
            Self::TooLarge => "request_too_large",
            Self::NoModel => "model_unavailable",
            Self::NoTools => "dependency_unavailable",
            Self::Other => "processing_error",
        }
    }

    /// What a person is told; `why` is what was said of it.
    pub(super) fn text(self, disclosure: Disclosure, why: &str) -> String {
        match disclosure {
            Disclosure::Generic => Self::Other.sentence().to_owned(),
            Disclosure::Detailed if !why.is_empty() => format!("{} ({why})", self.sentence()),
            Disclosure::Standard | Disclosure::Detailed => self.sentence().to_owned(),
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::RateLimited { .. } => {
                "The model's provider takes no more requests at the moment. Try again later."
            }
            Self::QuotaExhausted => "Nothing is left of what this server may have of the model's provider.",
            Self::OverBudget(_) => "The account has spent its budget of today. Try again tomorrow.",
            Self::Misconfigured => "The model's provider does not accept this server's credentials.",
            Self::Unavailable => "The model does not answer at the moment. Try again later.",
            Self::TooLarge => "The conversation is too long for the model. Begin a new session.",
            Self::NoModel => "The model that was asked for is not there.",
            Self::NoTools => "Something that the answer needs is not there at the moment. Try again later.",
            Self::Other => "Something went wrong while this was answered. Try again later.",
        }
    }

    /// What a program is told; `why` is what was said of it.
    pub(super) fn failure(self, disclosure: Disclosure, asked: Asked<'_>, why: &str) -> Failure {
        let (code, fields) = match disclosure {
            Disclosure::Generic => (Self::Other.code(), Map::new()),
            Disclosure::Standard => (self.code(), self.fields(asked)),
            Disclosure::Detailed => {
                let mut fields = self.fields(asked);
                fields.extend(Some(why).filter(|why| !why.is_empty()).map(|why| field("detail", why)));
                (self.code(), fields)
            }
        };
        Failure {
            code: Some(code.to_owned()),
            fields_json: Some(Value::Object(fields).to_string()),
            disclosure: Some(disclosure.name().to_owned()),
        }
    }

    /// What a client may put into words of its own.
    fn fields(self, asked: Asked<'_>) -> Map<String, Value> {
        let known = [("model_id", asked.model), ("provider", asked.provider.unwrap_or_default())];
        let known = known.into_iter().filter(|(_, text)| !text.is_empty());
        let mut fields: Map<_, _> = known.map(|(name, text)| field(name, text)).collect();
        match self {
            Self::RateLimited { retry_after: Some(wait) } => {
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                fields.extend([field("retry_after", seconds)]);
            }
            Self::OverBudget(over) => {
                let (spent, limit, currency) = over.figures();
                fields.extend([field("spent", spent), field("limit", limit), field("currency", currency)]);
            }
            Self::RateLimited { retry_after: None }
            | Self::QuotaExhausted
            | Self::Misconfigured
            | Self::Unavailable
            | Self::TooLarge
            | Self::NoModel
            | Self::NoTools
            | Self::Other => {}
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_can_hear_less_and_never_more() {
        let limited = Cause::RateLimited { retry_after: Some(Duration::from_millis(1500)) };
        let told = |disclosure| {
            let asked = Asked { model: "m", provider: Some("p") };
            let failure = limited.failure(disclosure, asked, "429");
            let fields: Value = serde_json::from_str(failure.fields_json.as_deref().unwrap()).unwrap();
            (failure.code.unwrap(), fields, limited.text(disclosure, "429"))
        };
        let standard = Disclosure::Standard.narrowed(Some("detailed"));
        assert_eq!(standard, Disclosure::Standard);
        let (code, fields, text) = told(standard);
        assert_eq!(code, "provider_rate_limited");
        assert_eq!(fields, json!({ "model_id": "m", "provider": "p", "retry_after": 2 }));
        assert!(!text.contains("429"));
        let generic = told(standard.narrowed(Some("generic")));
        assert_eq!(generic, ("processing_error".to_owned(), json!({}), Cause::Other.text(standard, "")));
        assert_eq!(Disclosure::Detailed.narrowed(None), Disclosure::Detailed);
        let (_, fields, text) = told(Disclosure::Detailed);
        assert!(fields["detail"] == "429" && text.contains("429"));
    }
}
