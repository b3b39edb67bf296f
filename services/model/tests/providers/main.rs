//! Models as the agent has them: loaded from a list, asked over real sockets.

#![cfg(test)]

mod builtin;
mod calls;
mod catalogue;
mod span;
