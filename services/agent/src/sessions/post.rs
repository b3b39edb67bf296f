//! What is said to a session: put into its inbox, where the first one of a key counts, for whoever owns the session.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _, pin_mut};
use prost::Message as _;
use runtime::clock;
use store::{Post, follow};
use tokio::time::timeout;
use wire::session::{Letter, Message, Phase, ToolDecision, ToolResult, event::Data, letter};

use super::{
    Error, Sessions, ids,
    record::{self, Pending, Standing},
};

/// How long a message may take to become an event.
const HEARD: Duration = Duration::from_secs(8);
/// How long a turn may take to stop.
const STOPPED: Duration = Duration::from_secs(5);

/// Why something cannot be said.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error(transparent)]
    Session(#[from] Error),
    #[error("client_message_id: it belongs to another message of this session")]
    OtherMessage,
    #[error("the session is not waiting for tool results")]
    NotWaiting,
    #[error("`{0}` is not a call that waits")]
    NoSuchCall(String),
    #[error("the session does not answer at the moment; say it again with the same client_message_id")]
    NotHeard,
}

impl From<store::Error> for Refused {
    fn from(error: store::Error) -> Self {
        Self::Session(error.into())
    }
}

/// A message that is an event.
pub(crate) struct Heard {
    pub message: Message,
    pub sequence: u64,
    pub turn: String,
}

impl Sessions {
    /// Says something, and waits until it is an event.
    pub(crate) async fn say(
        self: &Arc<Self>,
        id: &str,
        account: &str,
        principal: &str,
        message: Message,
        client_id: &str,
    ) -> Result<Heard, Refused> {
        let entry = self.find(id, account).await?;
        let log = entry.log;
        self.check_images(account, &message).await?;
        let message = Message {
            id: ids::new_message(),
            role: "user".to_owned(),
            created_at: Some(wire::time(domain::Timestamp(clock::unix_nanos()))),
            ..message
        };
        let key = match client_id {
            "" => format!("message/{}", message.id),
            client_id => format!("message/client/{client_id}"),
        };
        let content = Some(letter::Content::Message(message.clone()));
        let letter = Letter { content, principal: principal.to_owned(), position: entry.position };
        let after = match self.store().post(&log, &key, letter.encode_to_vec()).await? {
            Post::First => entry.position,
            Post::Earlier(earlier) => said_after(&earlier, &message).ok_or(Refused::OtherMessage)?,
        };
        self.wake(log.clone());
        let heard = timeout(HEARD, self.heard(&log, after, &key)).await;
        heard.unwrap_or(Err(Refused::NotHeard))
    }

    /// Waits for the event that a letter has become.
    async fn heard(&self, log: &domain::LogId, after: u64, key: &str) -> Result<Heard, Refused> {
        let entries =
            follow(self.store(), log.clone(), after).try_filter_map(async |event| Ok(record::decode(&event)));
        pin_mut!(entries);
        let mut found = None;
        while let Some(entry) = entries.next().await {
            let entry = entry?;
            match entry.data() {
                Some(Data::InputMessage(input)) if entry.record.cause == key => {
                    let message = input.message.clone().unwrap_or_default();
                    let context = entry.record.event.as_ref().and_then(|event| event.context.clone());
                    let turn = context.map(|context| context.turn_id).unwrap_or_default();
                    let heard = Heard { message, sequence: entry.sequence, turn };
                    if !heard.turn.is_empty() {
                        return Ok(heard);
                    }
                    found = Some(heard);
                }
                Some(Data::TurnStarted(started)) => {
                    if let Some(heard) = found.take() {
                        return Ok(Heard { turn: started.turn_id.clone(), ..heard });
                    }
                }
                _ => {}
            }
        }
        Err(Refused::NotHeard)
    }

    /// Stops the turn that goes on. False if none did.
    pub(crate) async fn cancel(
        self: &Arc<Self>,
        id: &str,
        account: &str,
        reason: String,
    ) -> Result<bool, Refused> {
        let entry = self.find(id, account).await?;
        let standing = Standing::of(&*self.store(), &entry.log, entry.position).await?;
        let Some(turn) = standing.turn_id() else { return Ok(false) };
        let letter = Letter { content: Some(letter::Content::Cancel(reason)), ..Letter::default() };
        self.store().post(&entry.log, &format!("cancel/{turn}"), letter.encode_to_vec()).await?;
        self.wake(entry.log.clone());
        // The turn stops, whether this waits for it or not.
        let _ = timeout(STOPPED, self.rests(&entry.log, entry.position)).await;
        Ok(true)
    }

    /// Waits until no turn goes on.
    async fn rests(&self, log: &domain::LogId, after: u64) -> Result<(), store::Error> {
        let events = follow(self.store(), log.clone(), after);
        pin_mut!(events);
        while let Some(event) = events.next().await {
            if record::decode(&*event?).is_some_and(|entry| entry.record.phase() == Phase::Idle) {
                break;
            }
        }
        Ok(())
    }

    /// Brings results of the client's tools; returns how many count.
    pub(crate) async fn bring(
        self: &Arc<Self>,
        id: &str,
        account: &str,
        results: Vec<ToolResult>,
    ) -> Result<u32, Refused> {
        let letters =
            results.into_iter().map(|result| (result.tool_call_id.clone(), letter::Content::Result(result)));
        let letters: Vec<_> = letters.collect();
        self.settle(id, account, letters, |(calls, _)| calls.into_iter().map(|call| call.id).collect()).await
    }

    /// Decides about calls that wait for a person; returns how many decisions count.
    pub(crate) async fn decide(
        self: &Arc<Self>,
        id: &str,
        account: &str,
        decisions: Vec<ToolDecision>,
    ) -> Result<u32, Refused> {
        let letters = decisions
            .into_iter()
            .map(|decision| (decision.tool_call_id.clone(), letter::Content::Decision(decision)));
        let letters: Vec<_> = letters.collect();
        self.settle(id, account, letters, |(_, approvals)| {
            approvals.into_iter().filter_map(|asked| asked.tool_call.map(|call| call.id)).collect()
        })
        .await
    }

    async fn settle(
        self: &Arc<Self>,
        id: &str,
        account: &str,
        letters: Vec<(String, letter::Content)>,
        which: impl Fn(Pending) -> Vec<String>,
    ) -> Result<u32, Refused> {
        let entry = self.find(id, account).await?;
        let standing = Standing::of(&*self.store(), &entry.log, entry.position).await?;
        let waiting = which(standing.pending(&*self.store(), &entry.log).await?);
        let Some(turn) = standing.turn_id() else { return Err(Refused::NotWaiting) };
        if waiting.is_empty() {
            return Err(Refused::NotWaiting);
        }
        if let Some((call, _)) = letters.iter().find(|(call, _)| !waiting.contains(call)) {
            return Err(Refused::NoSuchCall(call.clone()));
        }
        let mut accepted = 0;
        for (call, content) in letters {
            let key = format!("settle/{turn}/{call}");
            let letter = Letter { content: Some(content), ..Letter::default() };
            if self.store().post(&entry.log, &key, letter.encode_to_vec()).await? == Post::First {
                accepted += 1;
            }
        }
        self.wake(entry.log);
        if accepted == 0 { Err(Refused::NotWaiting) } else { Ok(accepted) }
    }
}

/// After which event a letter was written that says the same as a message; `None` if it says something else.
fn said_after(letter: &[u8], message: &Message) -> Option<u64> {
    let Letter { content, position, .. } = Letter::decode(letter).ok()?;
    let Some(letter::Content::Message(earlier)) = content else { return None };
    let (id, created_at) = (message.id.clone(), message.created_at);
    (Message { id, created_at, ..earlier } == *message).then_some(position)
}
