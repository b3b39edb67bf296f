//! What a person allowed, signed where the person is known and checked where it counts.
//!
//! The edge that authenticates people holds a [`SigningKey`]; executors hold its [`PublicKey`] in a [`KeyRing`].
//! What is between them, the agent above all, can pass a grant on and neither make nor change one.
//!
//! # Layout
//! * `key`: Ed25519 keys, as text and in files
//! * `grant`: grants, signed and checked

mod grant;
mod key;

pub use grant::{Decider, Invalid, allow, sha256, verify};
pub use key::{Context, KeyError, KeyRing, PublicKey, SigningKey};
