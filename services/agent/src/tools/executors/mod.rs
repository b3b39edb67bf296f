//! The executors behind one name: which there are, which of them work, and which one takes a call.
//!
//! # Layout
//! * `member`: one executor, with what it does for us now
//! * `pool`: all of them, and the choice among them
//! * `discover`: finds them by the name that the operator gave, again and again

mod discover;
mod member;
mod pool;

pub use discover::{Dial, Discovered};
pub(crate) use member::{Busy, Client, Member, is_doubtful, is_lost, is_unsent, passed_on, unsent};
pub(crate) use pool::{Pool, Wish};
