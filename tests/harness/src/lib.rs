//! The test harness: what the tests share.
//!
//! # Layout
//! * [`components`]: what a machine may lack
//! * [`models`]: scripted model servers
//! * [`process`]: real sleuth processes

pub mod components;
pub mod models;
pub mod process;
