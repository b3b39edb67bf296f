//! The events of a session as its readers get them: filtered, with what is not stored put in.

use std::{collections::VecDeque, num::NonZeroUsize, sync::Arc};

use domain::{LogId, Role, RunId};
use futures_util::{Stream, TryStreamExt as _, stream};
use prost::Message as _;
use store::{Store, follow};
use wire::session::{
    Cursor, Event, Message, PlacedMessage, ToolResultPart, content_part, cursor, event::Data,
};

use super::{
    Error, Sessions,
    ids::{self, BadEvent},
    prompts::Prompts,
    record,
    record::Entry,
    wanted::Wanted,
    words,
};

/// Bytes of the events that a list has, unless one alone has more: half of what a gateway takes.
const LARGEST: usize = 32 << 20;

/// Why events cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(transparent)]
    Session(#[from] Error),
    #[error(transparent)]
    Cursor(#[from] BadEvent),
}

impl From<store::Error> for Unreadable {
    fn from(error: store::Error) -> Self {
        Self::Session(error.into())
    }
}

/// Tells one reader what happens in a session.
struct Teller {
    store: Arc<dyn Store>,
    log: LogId,
    wanted: Wanted,
    /// What was said of the messages that go on, each since its first event.
    said: Text,
    thought: Text,
    prompts: Prompts,
}

#[derive(Default)]
struct Text {
    began: u64,
    text: String,
}

impl Teller {
    /// The event of an entry, if the reader wants it.
    async fn tell(&mut self, entry: Entry) -> Result<Option<Event>, store::Error> {
        if !self.wanted.has(&entry) {
            return Ok(None);
        }
        let Entry { sequence, time, record } = entry;
        let Some(mut event) = record.event else { return Ok(None) };
        event.id = ids::event(self.log.as_str(), sequence, time);
        event.sequence = sequence;
        event.time = Some(wire::time(time));
        self.log.as_str().clone_into(&mut event.session_id);
        let began = record.message_began;
        match &mut event.data {
            Some(Data::OutputMessageDelta(delta)) if self.wanted.accumulated() => {
                let so_far = self.said(began, sequence, &delta.delta, |data| match data {
                    Data::OutputMessageDelta(delta) => Some(&delta.delta),
                    _ => None,
                });
                delta.accumulated = Some(so_far.await?);
            }
            Some(Data::ReasonThinkingDelta(delta)) if self.wanted.accumulated() => {
                std::mem::swap(&mut self.said, &mut self.thought);
                let so_far = self.said(began, sequence, &delta.delta, |data| match data {
                    Data::ReasonThinkingDelta(delta) => Some(&delta.delta),
                    _ => None,
                });
                delta.accumulated = Some(so_far.await?);
                std::mem::swap(&mut self.said, &mut self.thought);
            }
            Some(Data::LlmGeneration(generation)) if self.wanted.prompts() => {
                let run = RunId::new(record.run_id);
                self.prompts.put_in(&*self.store, generation, run, record.run_position).await?;
            }
            _ => {}
        }
        Ok(Some(event))
    }

    /// All text of a message up to an event of it.
    async fn said(
        &mut self,
        began: u64,
        sequence: u64,
        new: &str,
        piece: impl Fn(&Data) -> Option<&String>,
    ) -> Result<String, store::Error> {
        if self.said.began != began {
            let mut text = String::new();
            record::range(&*self.store, &self.log, began, sequence - 1, |entry| {
                text.extend(entry.data().and_then(&piece).map(String::as_str));
            })
            .await?;
            self.said = Text { began, text };
        }
        self.said.text.push_str(new);
        Ok(self.said.text.clone())
    }
}

/// Which events a list begins and ends with.
pub(crate) struct Range {
    /// The place after which it begins; without one it has the last events.
    pub cursor: Option<Cursor>,
    /// The event before which it ends; zero for no end.
    pub before: u64,
    pub limit: NonZeroUsize,
}

/// Events that a list has, and whether there are more.
pub(crate) struct Listed {
    pub events: Vec<Event>,
    pub more: bool,
    /// All events of the session that are no deltas.
    pub total: u64,
}

impl Sessions {
    /// The events after a place, or from now on, for as long as they are read.
    pub(crate) async fn watch(
        &self,
        id: &str,
        account: &str,
        cursor: Option<Cursor>,
        wanted: Wanted,
    ) -> Result<impl Stream<Item = Result<Event, store::Error>> + Send + 'static, Unreadable> {
        let entry = self.find(id, account).await?;
        let after = place(id, cursor)?.unwrap_or(entry.position);
        let teller = self.teller(entry.log.clone(), wanted);
        let entries = follow(self.store(), entry.log, after);
        let entries = entries.try_filter_map(async |event| Ok(record::decode(&event)));
        let telling = (Box::pin(entries), teller);
        Ok(stream::try_unfold(telling, |(mut entries, mut teller)| async move {
            while let Some(entry) = entries.try_next().await? {
                if let Some(event) = teller.tell(entry).await? {
                    return Ok(Some((event, (entries, teller))));
                }
            }
            Ok(None)
        }))
    }

    /// Events: the first ones after a place, or the last ones.
    pub(crate) async fn events(
        &self,
        id: &str,
        account: &str,
        Range { cursor, before, limit }: Range,
        wanted: Wanted,
    ) -> Result<Listed, Unreadable> {
        let entry = self.find(id, account).await?;
        let end = if before == 0 { entry.position } else { entry.position.min(before - 1) };
        let mut teller = self.teller(entry.log.clone(), wanted);
        let (events, more) = match place(id, cursor)? {
            Some(after) => self.first(&entry.log, &mut teller, after, end, limit).await?,
            None => self.last(&entry.log, &mut teller, end, limit).await?,
        };
        let newest = record::at(&*self.store(), &entry.log, entry.position).await?;
        let total = newest.map_or(0, |newest| newest.record.lasting);
        Ok(Listed { events, more, total })
    }

    async fn first(
        &self,
        log: &LogId,
        teller: &mut Teller,
        after: u64,
        end: u64,
        limit: NonZeroUsize,
    ) -> Result<(Vec<Event>, bool), store::Error> {
        let (mut events, mut bytes, mut after) = (Vec::new(), 0, after);
        while after < end {
            let page = record::page(&*self.store(), log, after).await?;
            let Some(newest) = page.last().map(|entry| entry.sequence) else { break };
            for entry in page.into_iter().filter(|entry| entry.sequence <= end) {
                if events.len() == limit.get() {
                    return Ok((events, true));
                }
                let Some(event) = teller.tell(entry).await? else { continue };
                bytes += event.encoded_len();
                if bytes > LARGEST && !events.is_empty() {
                    return Ok((events, true));
                }
                events.push(event);
            }
            after = newest;
        }
        Ok((events, false))
    }

    async fn last(
        &self,
        log: &LogId,
        teller: &mut Teller,
        end: u64,
        limit: NonZeroUsize,
    ) -> Result<(Vec<Event>, bool), store::Error> {
        let (mut wanted, mut end, mut size) = (Vec::new(), end, 0);
        while end > 0 && wanted.len() <= limit.get() && size <= LARGEST {
            let start = end.saturating_sub(record::WINDOW);
            let mut window = Vec::new();
            record::range(&*self.store(), log, start, end, |entry| {
                if teller.wanted.has(&entry) {
                    size += entry.record.encoded_len();
                    window.push(entry);
                }
            })
            .await?;
            window.append(&mut wanted);
            wanted = window;
            end = start;
        }
        let mut more = wanted.len() > limit.get() || end > 0 && size > LARGEST;
        let (mut events, mut bytes) = (VecDeque::new(), 0);
        let cut = wanted.len().saturating_sub(limit.get());
        for entry in wanted.drain(cut..) {
            let Some(event) = teller.tell(entry).await? else { continue };
            bytes += event.encoded_len();
            events.push_back(event);
            while bytes > LARGEST && events.len() > 1 {
                bytes -= events.pop_front().map_or(0, |first| first.encoded_len());
                more = true;
            }
        }
        Ok((events.into(), more))
    }

    /// Messages of the conversation after an event, oldest first, and whether there are more.
    pub(crate) async fn messages(
        &self,
        id: &str,
        account: &str,
        after: u64,
        limit: NonZeroUsize,
    ) -> Result<(Vec<PlacedMessage>, bool), Error> {
        let entry = self.find(id, account).await?;
        let (mut messages, mut after) = (Vec::new(), after);
        while after < entry.position {
            let page = record::page(&*self.store(), &entry.log, after).await?;
            let Some(newest) = page.last().map(|entry| entry.sequence) else { break };
            after = newest;
            for record::Entry { sequence, time, record } in page {
                let data = record.event.and_then(|event| event.data);
                let Some(message) = data.and_then(|data| message(data, sequence, time)) else { continue };
                if messages.len() == limit.get() {
                    return Ok((messages, true));
                }
                messages.push(PlacedMessage { message: Some(message), sequence });
            }
        }
        Ok((messages, false))
    }

    /// What was said in a session, where the runs that had the conversation are no longer kept.
    pub(super) async fn remembered(
        &self,
        log: &LogId,
        last: u64,
    ) -> Result<Vec<domain::Message>, store::Error> {
        let mut said = Vec::new();
        record::range(&*self.store(), log, 0, last, |entry| {
            let (role, message) = match entry.data() {
                Some(Data::InputMessage(input)) => (Role::User, &input.message),
                Some(Data::OutputMessageCompleted(completed)) => (Role::Assistant, &completed.message),
                _ => return,
            };
            let text = message.as_ref().map(words::words).unwrap_or_default();
            if !text.is_empty() {
                said.push(domain::Message::text(role, text));
            }
        })
        .await?;
        Ok(said)
    }

    fn teller(&self, log: LogId, wanted: Wanted) -> Teller {
        let (said, thought) = Default::default();
        Teller { store: self.store(), log, wanted, said, thought, prompts: Prompts::default() }
    }
}

/// The message that an event has.
fn message(data: Data, sequence: u64, time: domain::Timestamp) -> Option<Message> {
    match data {
        Data::InputMessage(input) => input.message,
        Data::OutputMessageCompleted(completed) => completed.message,
        Data::ToolCompleted(completed) => {
            let text = completed.result.first().and_then(|part| match &part.part {
                Some(content_part::Part::Text(text)) => {
                    Some(serde_json::Value::String(text.clone()).to_string())
                }
                _ => None,
            });
            let result = ToolResultPart {
                tool_call_id: completed.tool_call_id.clone(),
                result_json: text,
                error: completed.error,
            };
            let part = wire::session::ContentPart { part: Some(content_part::Part::ToolResult(result)) };
            Some(Message {
                id: ids::named("message_", &format!("{}/{sequence}", completed.tool_call_id)),
                role: "tool_result".to_owned(),
                content: vec![part],
                created_at: Some(wire::time(time)),
                ..Message::default()
            })
        }
        _ => None,
    }
}

/// The sequence after which a reader begins, if one is given.
fn place(session: &str, cursor: Option<Cursor>) -> Result<Option<u64>, BadEvent> {
    match cursor.and_then(|cursor| cursor.place) {
        Some(cursor::Place::SinceId(id)) => ids::sequence(session, &id).map(Some),
        Some(cursor::Place::AfterSequence(sequence)) => Ok(Some(sequence)),
        None => Ok(None),
    }
}
