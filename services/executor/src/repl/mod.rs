//! A JavaScript interpreter that keeps its variables from call to call, in a sandboxed process of its own.
//!
//! * `message`: what the two sides say to each other
//! * `engine`, `budget`, `prelude.js`: the inner side, which holds the interpreter and has nothing else
//! * `serve`: the inner side's loop
//! * `process`: the outer side's handle on one interpreter
//! * `evaluate`: one evaluation, with the calls that it makes to its host
//! * `interpreters`: those of all sessions

mod budget;
mod engine;
mod evaluate;
mod interpreters;
mod message;
mod process;
mod serve;

pub(crate) use evaluate::{Answer, Ask, Evaluated, Host};
pub(crate) use interpreters::{Failed, Interpreters, Name, Place};
pub(crate) use message::{Limits, Stream};
pub(crate) use serve::serve;
