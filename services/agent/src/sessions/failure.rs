//! What is said of a turn that failed: a stable code, and as much as the client wants to hear.

use domain::FailureCode;
use serde_json::json;
use wire::session::Failure;

use crate::runs::Refusal;

/// How much is said of an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Disclosure {
    /// That there was one.
    Generic,
    /// Which one.
    #[default]
    Standard,
}

impl Disclosure {
    /// What a client asks for: less than the standard can be had, more cannot.
    pub(super) fn asked(text: Option<&str>) -> Self {
        match text {
            Some("generic") => Self::Generic,
            Some(_) | None => Self::Standard,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::Standard => "standard",
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
            Refusal::Blind { .. } | Refusal::ClientTool(_) | Refusal::NothingToDo | Refusal::OtherRequest => {
                Self::Other
            }
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

    /// What a person is told.
    pub(super) fn text(self, disclosure: Disclosure) -> &'static str {
        let cause = match disclosure {
            Disclosure::Generic => Self::Other,
            Disclosure::Standard => self,
        };
        match cause {
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
            Disclosure::Standard => (self.code(), json!({ "model_id": model })),
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
        let standard = Disclosure::asked(Some("detailed"));
        assert_eq!(standard, Disclosure::Standard);
        assert_eq!(Cause::RateLimited.failure(standard, "m").code.as_deref(), Some("provider_rate_limited"));
        let generic = Disclosure::asked(Some("generic"));
        let failure = Cause::RateLimited.failure(generic, "m");
        assert_eq!(failure.code.as_deref(), Some("processing_error"));
        assert_eq!(failure.fields_json.as_deref(), Some("{}"));
        assert_eq!(Cause::RateLimited.text(generic), Cause::Other.text(standard));
    }
}
