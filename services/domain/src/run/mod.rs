//! The run as a pure state machine: inputs in, events and effects out.
//!
//! All state comes from applied events, so folding a log gives the machine that wrote it, and
//! [`Run::in_flight`] says what a driver that takes over must do.
//!
//! # Layout
//! * `alphabet`: what goes in ([`Input`]) and what comes out ([`Effect`], [`Step`])
//! * `state`: what is known of a run, and how each event changes it
//! * `decide`: what each input leads to
//! * `code`: calls that are code of the agent
//! * `compact`: a summary in the place of a conversation that is too long
//! * `family`: the agents of a run, one machine each
//! * `refuse`: calls that never run
//! * `steer`: what is said to a run while it goes on
//! * `text`: the sentences that the machine itself says

mod alphabet;
mod code;
mod compact;
mod decide;
mod family;
mod refuse;
mod state;
mod steer;
mod text;

#[cfg(test)]
mod tests;

pub use alphabet::{Command, Effect, Input, ModelReply, Outcome, Settlement, Step};
pub use compact::SummaryRequest;
pub use family::{Family, Move};
pub use state::Run;
