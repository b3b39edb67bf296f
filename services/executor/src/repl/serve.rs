//! The inner side: a process that is nothing but an interpreter.

use std::{io, os::unix::net::UnixStream, rc::Rc};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::{
    engine::{Engine, State},
    message::{self, FromEngine, Limits, ToEngine},
};

/// Memory of the process beside that of its interpreter: the program, and texts on their way.
const BESIDE: usize = 1 << 30;
/// Processor time of an interpreter in all its evaluations.
const PROCESSOR_SECONDS: u64 = 3600;

/// Serves a host at the other end of `channel` until that is closed.
pub(crate) fn serve(mut channel: UnixStream) -> io::Result<()> {
    let (first, variable) = message::read(&mut channel)?;
    let ToEngine::Start(limits) = first else { return Err(io::ErrorKind::InvalidData.into()) };
    confine(limits)?;
    let out = Rc::new(channel.try_clone()?);
    let own = Rc::clone(&out);
    let say = move |message: &FromEngine, attachment: &[u8]| message::write(&mut &*own, message, attachment);
    let text = std::str::from_utf8(&variable).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut engine = Engine::new(limits, text, Box::new(say)).map_err(io::Error::other)?;
    drop(variable);
    message::write(&mut &*out, &FromEngine::Ready, &[])?;
    loop {
        let (message, attachment) = message::read(&mut channel)?;
        let text = String::from_utf8_lossy(&attachment);
        let state = match message {
            ToEngine::Start(_) => return Err(io::ErrorKind::InvalidData.into()),
            ToEngine::Evaluate => match engine.start(&text) {
                Ok(()) => engine.work(),
                Err(error) => Some(State::Done { error: Some(error), answer: None }),
            },
            ToEngine::Answer(call) => {
                engine.settle(call, Ok(&text));
                engine.work()
            }
            ToEngine::Refusal(call) => {
                engine.settle(call, Err(&text));
                engine.work()
            }
        };
        if let Some(error) = engine.broken() {
            return Err(error);
        }
        let message = match state {
            // An answer that came too late.
            None => continue,
            Some(State::Waits) => FromEngine::Waiting,
            Some(State::Done { error, answer }) => FromEngine::Done { error, answer },
        };
        message::write(&mut &*out, &message, &[])?;
    }
}

/// The last line behind the limits of the interpreter itself.
fn confine(limits: Limits) -> io::Result<()> {
    let memory = limits.memory.saturating_add(BESIDE) as u64;
    for (resource, most) in [
        (Resource::As, memory),
        (Resource::Cpu, PROCESSOR_SECONDS),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
