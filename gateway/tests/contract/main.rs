//! The gateway over real sockets: HTTP on one side, an agent that plays written events on the other.

#![cfg(test)]

mod agent;
mod approvals;
mod chat;
mod compaction;
mod conversation;
mod doors;
mod harness;
mod harness_relay;
mod older;
mod resume;
mod robusta;
mod routes;
mod sessions;
mod sizes;
mod streams;
mod traces;
mod validation;
mod world;
