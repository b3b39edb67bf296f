//! The gateway: HTTP in, gRPC out.
//!
//! It authenticates, limits and validates, and projects the agent's typed events to the wire formats of HTTP
//! clients. It holds no state that a second replica would miss. The formats are described in `README.md`.
//!
//! # Layout
//! * [`Config`], [`Gateway`]: settings, and the server that runs with them; `state`: what all requests share
//! * `router`: the table of routes, and the layers around them
//! * `exchange`, `guard`, `auth`: what holds for every request: its id and trace, browsers, keys; `asker`: whose they are
//! * `body`, `problem`, `dialect`: JSON bodies in, JSON errors out, in the words of whose path it is
//! * `passing`: headers that go along with a question
//! * `upstream`: the agent; `following`: a run, from whichever agent has it
//! * `patience`: how long an agent is looked for that goes on with what a lost one did
//! * `approvals`: what people decide, signed
//! * `resume`: requests that come again
//! * `answer`, `sse`: one run as a stream of frames; a dialect says which
//! * `holmes`: the HolmesGPT dialects
//! * `robusta`: the dialect of Robusta's hosted chat, which is about clusters of accounts
//! * `admin`: accounts, keys, and what was done with them
//! * `sessions`: the session dialect
//! * `harness`: the dialect of coding agents, whose runs wait for decisions
//! * `runs`, `ops`: the routes that are no dialect

mod admin;
mod answer;
mod approvals;
mod asker;
mod auth;
mod body;
mod config;
mod dialect;
mod exchange;
mod following;
mod guard;
mod harness;
mod holmes;
mod ops;
mod passing;
mod patience;
mod problem;
mod resume;
mod robusta;
mod router;
mod runs;
mod server;
mod sessions;
mod sse;
mod state;
mod upstream;

pub mod telemetry;

pub use config::{BadOrigin, Config, MetricsText, Origin};
pub use passing::{NotPassed, Passed};
pub use server::Gateway;
