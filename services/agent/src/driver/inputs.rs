//! What the work of the agents has to tell their machines.

use domain::{AgentId, CallId, Input, QuestionAnswered, Usage};
use tokio::sync::mpsc;

use super::code::InFlight;
use crate::tools::{Placing, Question};

/// Inputs that wait; whoever makes more of them waits.
const BACKLOG: usize = 256;

/// What the driver hears.
#[derive(Debug)]
pub(super) enum Heard {
    /// Something for the machine of an agent.
    Input(Box<Input>),
    /// Code of an agent asks for something.
    Asked(CallId, Box<Question>),
    /// A call is about to go to an executor.
    Placed(CallId, Placing),
    /// A model has answered code; the call is in flight until the machine knows.
    Answered(Box<QuestionAnswered>, Usage, InFlight),
}

/// All inputs of a run.
#[derive(Debug)]
pub(super) struct Inputs {
    from: mpsc::Receiver<(AgentId, Heard)>,
    to: mpsc::Sender<(AgentId, Heard)>,
}

/// The way to the machine of one agent.
#[derive(Clone, Debug)]
pub(super) struct To {
    agent: AgentId,
    to: mpsc::Sender<(AgentId, Heard)>,
}

/// The run has ended and wants no input.
#[derive(Debug)]
pub(super) struct Ended;

impl Inputs {
    pub(super) fn new() -> Self {
        let (to, from) = mpsc::channel(BACKLOG);
        Self { from, to }
    }

    /// The way to the machine of an agent.
    pub(super) fn of(&self, agent: &AgentId) -> To {
        To { agent: agent.clone(), to: self.to.clone() }
    }

    /// The next one, once it is there.
    pub(super) async fn next(&mut self) -> (AgentId, Heard) {
        match self.from.recv().await {
            Some(input) => input,
            // A sender is in here.
            None => std::future::pending().await,
        }
    }

    /// The next one, if it is there.
    pub(super) fn at_hand(&mut self) -> Option<(AgentId, Heard)> {
        self.from.try_recv().ok()
    }
}

impl To {
    pub(super) async fn send(&self, input: Input) -> Result<(), Ended> {
        self.hear(Heard::Input(Box::new(input))).await
    }

    pub(super) async fn ask(&self, call: CallId, question: Question) -> Result<(), Ended> {
        self.hear(Heard::Asked(call, Box::new(question))).await
    }

    pub(super) async fn place(&self, call: CallId, placing: Placing) -> Result<(), Ended> {
        self.hear(Heard::Placed(call, placing)).await
    }

    pub(super) async fn answered(
        &self,
        answered: QuestionAnswered,
        usage: Usage,
        flight: InFlight,
    ) -> Result<(), Ended> {
        self.hear(Heard::Answered(Box::new(answered), usage, flight)).await
    }

    async fn hear(&self, heard: Heard) -> Result<(), Ended> {
        self.to.send((self.agent.clone(), heard)).await.map_err(|_| Ended)
    }
}
