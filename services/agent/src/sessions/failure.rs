//! What is said of a turn that failed: a stable code, and as much as the client wants to hear.

use domain::FailureCode;
use serde_json::json;
use wire::session::Failure;

use crate::runs::Refusal;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    RateLimited,
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
            FailureCode::RateLimited => Self::RateLimited,
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
            Refusal::Executor(_)
            | Refusal::Cluster(_)
            | Refusal::TooMany(_)
            | Refusal::ShuttingDown
            | Refusal::Log(_) => Self::NoTools,
            Refusal::Blind { .. }
            | Refusal::ClientTool(_)
            | Refusal::Unnamed(_)
            | Refusal::NothingToDo
            | Refusal::OtherRequest => Self::Other,
        }
    }
}

impl Cause {
    fn code(self) -> &'static str {
        match self {
            Self::RateLimited => "provider_rate_limited",
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
            Self::RateLimited => {
                "The model's provider takes no more requests at the moment. Try again later."
            }
            Self::Misconfigured => "The model's provider does not accept this server's credentials.",
            Self::Unavailable => "The model does not answer at the moment. Try again later.",
            Self::TooLarge => "The conversation is too long for the model. Begin a new session.",
            Self::NoModel => "The model that was asked for is not there.",
            Self::NoTools => "Something that the answer needs is not there at the moment. Try again later.",
            Self::Other => "Something went wrong while this was answered. Try again later.",
        }
    }

    /// What a program is told.
    pub(super) fn failure(self, disclosure: Disclosure, model: &str) -> Failure {
        let (code, fields) = match disclosure {
            Disclosure::Generic => (Self::Other.code(), json!({})),
            Disclosure::Standard | Disclosure::Detailed => (self.code(), json!({ "model_id": model })),
        };
        Failure {
            code: Some(code.to_owned()),
            fields_json: Some(fields.to_string()),
            disclosure: Some(disclosure.name().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_can_hear_less_and_never_more() {
        let standard = Disclosure::Standard.narrowed(Some("detailed"));
        assert_eq!(standard, Disclosure::Standard);
        assert_eq!(Cause::RateLimited.failure(standard, "m").code.as_deref(), Some("provider_rate_limited"));
        let generic = standard.narrowed(Some("generic"));
        let failure = Cause::RateLimited.failure(generic, "m");
        assert_eq!(failure.code.as_deref(), Some("processing_error"));
        assert_eq!(failure.fields_json.as_deref(), Some("{}"));
        assert_eq!(Cause::RateLimited.text(generic, "429"), Cause::Other.text(standard, "429"));
        assert!(!Cause::RateLimited.text(standard, "429").contains("429"));
        assert_eq!(Disclosure::Detailed.narrowed(None), Disclosure::Detailed);
        assert!(Cause::RateLimited.text(Disclosure::Detailed, "429").contains("429"));
    }
}
