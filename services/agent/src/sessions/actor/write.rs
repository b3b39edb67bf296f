//! How a session's events are written: all of a step or none of them, with the letters that they deal with.

use domain::{RunId, Timestamp};
use store::Batch;
use wire::session::{Context, Phase, Record, event::Data};

use super::{Actor, now};
use crate::sessions::{
    project::Draft,
    record::{self, Entry},
};

/// Where events come from.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// A run, at a position.
    Run(&'a RunId, u64),
    /// A letter.
    Letter(&'a str),
    /// A letter with a message, and who said it.
    Said(&'a str, &'a str),
    /// The session itself.
    Own,
}

impl Actor {
    pub(super) async fn append_run(
        &mut self,
        run: &RunId,
        drafts: Vec<(u64, Draft)>,
    ) -> Result<(), store::Error> {
        let drafts = drafts.into_iter().map(|(position, draft)| {
            let waits = matches!(draft.1, Data::ToolCallRequested(_) | Data::ToolApprovalRequested(_));
            let phase = if waits { Phase::Waiting } else { Phase::Active };
            (Source::Run(run, position), draft, phase)
        });
        self.write(drafts.collect()).await
    }

    pub(super) async fn append(
        &mut self,
        source: Source<'_>,
        drafts: Vec<Draft>,
        phase: Phase,
    ) -> Result<(), store::Error> {
        self.write(drafts.into_iter().map(|draft| (source, draft, phase)).collect()).await
    }

    /// Writes events, all or none of them, and that the letters before them were heard.
    pub(super) async fn write(
        &mut self,
        drafts: Vec<(Source<'_>, Draft, Phase)>,
    ) -> Result<(), store::Error> {
        let last = drafts.len().saturating_sub(1);
        let time = now();
        let mut lasting = self.lasting;
        let mut events = Vec::with_capacity(drafts.len());
        for (at, (source, (context, data), phase)) in drafts.into_iter().enumerate() {
            let sequence = self.position + 1 + at as u64;
            // A batch stands as a whole: only the end of a turn is at rest.
            let phase = if phase == Phase::Idle && at < last { Phase::Active } else { phase };
            lasting += u64::from(!record::is_delta(&data));
            let mut entry = self.entry(sequence, time, source, context, data, phase);
            entry.record.lasting = lasting;
            if let Some(turn) = &mut self.turn {
                turn.note(&entry);
                if !entry.record.cause.is_empty() {
                    turn.causes.insert(entry.record.cause.clone());
                }
            }
            events.push(record::encode(&self.log, &entry));
        }
        let position = self.position + events.len() as u64;
        let taken = self.held.unwrap_or(self.heard);
        if events.is_empty() && taken == 0 {
            return Ok(());
        }
        let batch = Batch::new(self.position, events).taking(taken);
        self.sessions.store().append(&self.lease, batch).await?;
        (self.position, self.lasting) = (position, lasting);
        Ok(())
    }

    pub(super) fn entry(
        &self,
        sequence: u64,
        time: Timestamp,
        source: Source<'_>,
        context: Context,
        data: Data,
        phase: Phase,
    ) -> Entry {
        let (run, run_position) = match source {
            Source::Run(run, position) => (run.as_str(), position),
            Source::Letter(_) | Source::Said(..) | Source::Own => ("", 0),
        };
        let (cause, principal) = match source {
            Source::Letter(key) => (key, ""),
            Source::Said(key, principal) => (key, principal),
            Source::Run(..) | Source::Own => ("", ""),
        };
        let turn = self.turn.as_ref();
        let message_began = turn.map_or(0, |turn| turn.began(&data));
        let event = wire::session::Event {
            context: Some(context),
            data: Some(data),
            ..wire::session::Event::default()
        };
        let record = Record {
            event: Some(event),
            run_id: run.to_owned(),
            run_position,
            turn_began: turn.map_or(0, |turn| turn.began_at),
            phase: phase.into(),
            cause: cause.to_owned(),
            rest: (phase == Phase::Idle).then(|| self.rest.clone()),
            message_began,
            lasting: 0,
            principal: principal.to_owned(),
        };
        Entry { sequence, time, record }
    }
}
