//! The test harness: what the tests share.
//!
//! # Layout
//! * [`client`]: an HTTP client that reads event streams
//! * [`components`]: what a machine may lack
//! * [`models`]: scripted model servers
//! * [`process`]: real sleuth processes

pub mod client;
pub mod components;
pub mod models;
pub mod process;
