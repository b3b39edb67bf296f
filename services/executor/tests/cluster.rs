//! The way to clusters, before a real API server: what reads works, what writes does not, and nobody sees a
//! credential.

#![cfg(test)]

#[path = "cluster/bench.rs"]
mod bench;
#[path = "cluster/reads.rs"]
mod reads;
#[path = "cluster/writes.rs"]
mod writes;
