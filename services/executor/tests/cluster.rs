//! The way to clusters, before a real API server: what reads works, what writes does not, and nobody sees a
//! credential.

#![cfg(test)]

#[path = "cluster/bench.rs"]
mod bench;
#[path = "cluster/commands.rs"]
mod commands;
#[path = "cluster/credentials.rs"]
mod credentials;
#[path = "cluster/masks.rs"]
mod masks;
#[path = "cluster/reads.rs"]
mod reads;
#[expect(dead_code, reason = "not all tests use all of it")]
mod rig;
#[path = "cluster/writes.rs"]
mod writes;
