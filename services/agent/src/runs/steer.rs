//! What is said to a run while it goes on, wherever it is driven: every message once, by its key.

use domain::{EventKind, Input, LogId, Part, RunId, Steered};
use prost::Message as _;
use store::{Post, State};
use wire::agent;

use super::{Found, Runs, mail};

/// Why a run is not told something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotSteered {
    #[error("the run {0} has ended")]
    Over(RunId),
    #[error("client_message_id: it belongs to another message to this run")]
    OtherMessage,
    #[error("the model `{0}` cannot see images")]
    Blind(String),
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl Runs {
    /// Says something to a run. What was said by this key before is not said again.
    pub(crate) async fn steer(&self, found: Found, steered: Steered) -> Result<(), NotSteered> {
        let (run, goes_on) = match &found {
            Found::Here(run) => (run.id.clone(), run.outcome().is_none()),
            Found::Stored(entry) => (RunId::new(entry.log.as_str()), entry.state == State::Running),
        };
        if !goes_on {
            return Err(NotSteered::Over(run));
        }
        let Steered { key, message, principal } = steered;
        if message.parts.iter().any(|part| matches!(part, Part::Image(_))) {
            self.check_sight_of(&run).await?;
        }
        let (entry, message) = (format!("{}{key}", mail::SAID), Some(agent::Message::from(message)));
        let word = agent::Steered { key, message: message.clone(), principal };
        match self.log.post(&LogId::from(&run), &entry, word.encode_to_vec()).await? {
            Post::First => Ok(()),
            Post::Earlier(earlier) if read(&earlier).is_some_and(|earlier| earlier.message == message) => {
                Ok(())
            }
            Post::Earlier(_) => Err(NotSteered::OtherMessage),
        }
    }

    async fn check_sight_of(&self, run: &RunId) -> Result<(), NotSteered> {
        let first = self.log.read(&LogId::from(run), 0, std::num::NonZeroUsize::MIN).await?;
        let Some(EventKind::RunStarted(started)) = first.first().map(|event| &event.kind) else {
            return Ok(());
        };
        match self.models.get(Some(&started.model)) {
            Ok(model) if model.info().sees_images == Some(false) => {
                Err(NotSteered::Blind(started.model.clone()))
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// What an entry of the inbox says.
pub(super) fn input(payload: &[u8]) -> Option<Input> {
    let agent::Steered { key, message, principal } = read(payload)?;
    Some(Input::Steered(Steered { key, message: message?.try_into().ok()?, principal }))
}

fn read(payload: &[u8]) -> Option<agent::Steered> {
    agent::Steered::decode(payload).ok()
}
