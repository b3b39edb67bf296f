//! What stays of a run that is deleted: what an auditor reads of it.

use std::time::Duration;

use domain::{LogId, RunId};
use futures_util::{StreamExt as _, pin_mut};
use prost::Message as _;
use store::{BlobId, Creation, Idempotency, Kind, Meta, NewLog, OwnerId, tail};
use tokio::time::{Instant, timeout_at};
use wire::{AuditReader, account::KeptTrail};

use super::{NOBODY, Sessions};

/// How long a run that was stopped may take to say how it ended.
const ENDED: Duration = Duration::from_secs(5);

impl Sessions {
    /// Keeps the audit trail of a run that goes. Done again, it is kept as it is then.
    pub(super) async fn keep_trail(&self, run: &RunId, account: &str) -> Result<(), store::Error> {
        let bytes = match self.trail(run, account).await? {
            KeptTrail { entries } if entries.is_empty() => return Ok(()),
            trail => trail.encode_to_vec(),
        };
        let (id, details) = (LogId::new(wire::kept_trail(run.as_str())), BlobId::of(&bytes).0.to_vec());
        let meta = Meta {
            account: account.to_owned(),
            kind: Kind::Trail,
            title: String::new(),
            details: details.clone(),
        };
        let (scope, key) = (id.as_str().to_owned(), "trail".to_owned());
        let idempotency = Some(Idempotency { scope, key, digest: [0; 32] });
        let new = NewLog { id, owner: OwnerId::new(NOBODY), meta, idempotency, events: Vec::new() };
        let log = match self.store().create(new).await? {
            Creation::New(lease) => lease.log().clone(),
            Creation::Existing(log) | Creation::Mismatch(log) => log,
        };
        self.store().put_blob(&log, bytes).await?;
        self.store().describe(&log, String::new(), details).await
    }

    /// The trail of a run up to its end, if that is near.
    async fn trail(&self, run: &RunId, account: &str) -> Result<KeptTrail, store::Error> {
        let (events, until) = (tail(self.store(), run, 0), Instant::now() + ENDED);
        pin_mut!(events);
        let (mut reader, mut entries) = (AuditReader::new(account.to_owned()), Vec::new());
        while let Ok(Some(event)) = timeout_at(until, events.next()).await {
            match event {
                Ok(event) => entries.extend(reader.entry(&event)),
                Err(store::Error::UnknownLog(_)) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(KeptTrail { entries })
    }
}
