//! What an interpreter and its host say to each other: messages of JSON, each with an attachment of text.
//!
//! On the socket: the length of the rest in four bytes, the JSON, a zero byte, the attachment.

use std::io::{self, Read, Write};

use bytes::{BufMut as _, Bytes, BytesMut};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The longest message: a long text for the variable `context`.
pub(super) const LONGEST: usize = 160 << 20;

/// What the host says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToEngine {
    /// The first message. The attachment is the variable `context`.
    Start(Limits),
    /// The attachment is code to run.
    Evaluate,
    /// A call is answered; the attachment is JSON.
    Answer(u64),
    /// A call has failed; the attachment says why.
    Refusal(u64),
}

/// What one evaluation may take.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Bytes of memory of the interpreter.
    pub(crate) memory: usize,
    /// Milliseconds for which the interpreter works, without those for which it waits for its host.
    pub(crate) work_ms: u64,
    /// Thousands of steps.
    pub(crate) kilosteps: u64,
}

/// What the interpreter says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromEngine {
    /// It has begun.
    Ready,
    /// The attachment is output.
    Print(Stream),
    /// It asks for something; the attachment is the call's context, if it has one.
    Call { id: u64, operation: String, arguments: String, has_context: bool },
    /// It does nothing until a call is answered.
    Waiting,
    /// The evaluation has ended.
    Done {
        /// What ended it, unless it came to its end.
        error: Option<String>,
        /// What it gave as the final answer.
        answer: Option<String>,
    },
}

/// Where output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stream {
    Out,
    Err,
}

/// A message without its length.
pub(super) fn encode(message: &impl Serialize, attachment: &[u8]) -> io::Result<Bytes> {
    let json = serde_json::to_vec(message)?;
    let mut bytes = BytesMut::with_capacity(json.len() + 1 + attachment.len());
    bytes.put_slice(&json);
    bytes.put_u8(0);
    bytes.put_slice(attachment);
    Ok(bytes.freeze())
}

/// A message and its attachment.
pub(super) fn decode<T: DeserializeOwned>(mut bytes: BytesMut) -> io::Result<(T, BytesMut)> {
    let end = memchr::memchr(0, &bytes).ok_or(io::ErrorKind::InvalidData)?;
    let attachment = bytes.split_off(end + 1);
    Ok((serde_json::from_slice(&bytes[..end])?, attachment))
}

/// Writes a message where blocking is fine.
pub(super) fn write(to: &mut impl Write, message: &impl Serialize, attachment: &[u8]) -> io::Result<()> {
    let bytes = encode(message, attachment)?;
    let length = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    to.write_all(&length.to_be_bytes())?;
    to.write_all(&bytes)
}

/// Reads a message where blocking is fine.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<(T, BytesMut)> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = BytesMut::zeroed(length);
    from.read_exact(&mut bytes)?;
    decode(bytes)
}
