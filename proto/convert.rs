//! Wire to domain and back: the only place that knows both.
//!
//! Out of the domain nothing can fail. Into it, what the contract requires is checked.

mod audit;
mod conversation;
mod event;
mod permissions;
mod rlm;
mod setup;
mod tool;
mod usage;

pub use audit::{AuditReader, kept_trail};
pub use event::{time, timestamp};
pub use permissions::parameters;

/// A message from the wire lacks something, or says something that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed message: {0}")]
pub struct Malformed(pub &'static str);

fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}
