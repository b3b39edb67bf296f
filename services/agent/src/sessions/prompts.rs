//! What the model was told: it is in the log of its run, and put into the events of the session when they are read.

use domain::{AgentId, EventKind, Limits, LogId, Run, RunId, Timestamp, ToolBrief};
use store::Store;
use wire::session::{LlmGeneration, llm_generation::Tool};

use super::{
    turn::{each, fold},
    words,
};

/// The prompts of one run after the other.
#[derive(Default)]
pub(super) struct Prompts(Option<Seen>);

/// A run up to a position.
struct Seen {
    run: RunId,
    position: u64,
    folded: Run,
    /// The time of the last event.
    time: Timestamp,
    offered: Vec<ToolBrief>,
    /// Whether the last model call was without tools.
    closing: bool,
}

impl Seen {
    fn nothing_of(run: RunId) -> Self {
        let (folded, time) = (Run::new(Limits::default()), Timestamp::default());
        Self { run, position: 0, folded, time, offered: Vec::new(), closing: false }
    }

    async fn go_on(&mut self, store: &dyn Store, last: u64) -> Result<(), store::Error> {
        let (run, position) = (self.run.clone(), self.position);
        each(store, &run, position, last, |event| {
            fold(&mut self.folded, event);
            self.time = event.time;
            match &event.kind {
                EventKind::RunStarted(started) if event.agent == AgentId::main() => {
                    self.offered.clone_from(&started.setup.tools);
                }
                EventKind::ModelCalled(called) if event.agent == AgentId::main() => {
                    self.closing = called.closing.is_some();
                }
                _ => {}
            }
        })
        .await?;
        self.position = last;
        Ok(())
    }
}

impl Prompts {
    /// Puts in what the model was told whose answer is at this position of its run.
    pub(super) async fn put_in(
        &mut self,
        store: &dyn Store,
        generation: &mut LlmGeneration,
        run: RunId,
        position: u64,
    ) -> Result<(), store::Error> {
        let last = position.saturating_sub(1);
        let seen = self.0.take().filter(|seen| seen.run == run && seen.position <= last);
        let mut seen = seen.unwrap_or_else(|| Seen::nothing_of(run));
        match seen.go_on(store, last).await {
            // A run that is no longer kept is told without what the model was told.
            Ok(()) | Err(store::Error::UnknownLog(_)) => {}
            Err(error) => return Err(error),
        }
        let log = LogId::from(&seen.run);
        let messages = seen.folded.messages().iter().enumerate();
        generation.messages =
            messages.map(|(at, message)| words::told(&format!("{log}/{at}"), seen.time, message)).collect();
        if !seen.closing {
            let offered = seen.offered.iter().cloned();
            let told = |ToolBrief { name, description, toolset }| Tool {
                name,
                description,
                toolset,
                ..Tool::default()
            };
            generation.tools = offered.map(told).collect();
        }
        self.0 = Some(seen);
        Ok(())
    }
}
