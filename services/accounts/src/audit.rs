//! What was asked and done in an account, read from the logs of its runs, and from what was kept of those that were
//! deleted.

use std::{num::NonZeroUsize, sync::Arc};

use domain::{EventKind, LogId, Timestamp};
use futures_util::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use prost::Message as _;
use store::{BlobId, Entry, Kind, Query, Store};
use tonic::Status;
use wire::{
    AuditReader,
    account::{AuditEntry, KeptTrail, audit_entry::What},
    session::Record,
};

/// Events of a log that are read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);
/// Logs that are looked for at a time.
const LOGS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(499);
/// Nanoseconds that the clocks of agents and of their store may differ.
const SKEW: i64 = 300 * 1_000_000_000;

/// The entries of a trail.
type Entries = BoxStream<'static, Result<AuditEntry, Status>>;
/// Logs that may have some.
type Logs = BoxStream<'static, Result<Entry, Status>>;

/// Which part of a trail is wanted. What is empty asks for everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) account: String,
    /// Of so many runs at most that have something of it.
    pub(crate) runs: u32,
    /// Of this run, or of those of this session.
    pub(crate) of: String,
    /// Of runs that began before this one.
    pub(crate) before: String,
    pub(crate) filter: Filter,
}

/// Which entries are wanted. What is empty asks for all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) principal: String,
    pub(crate) cluster: String,
    pub(crate) kinds: Vec<String>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
}

impl Filter {
    fn wants(&self, entry: &AuditEntry, time: Timestamp) -> bool {
        let is = |wanted: &str, found: &str| wanted.is_empty() || wanted == found;
        let kind = entry.what.as_ref().map_or("", What::name);
        is(&self.principal, &entry.principal)
            && is(&self.cluster, &entry.cluster)
            && (self.kinds.is_empty() || self.kinds.iter().any(|wanted| wanted == kind))
            && self.since.is_none_or(|since| since <= time)
            && self.until.is_none_or(|until| time < until)
    }

    /// Whether a log has entries of the wanted time, as far as that can be told without them. What is kept of a run
    /// is younger than what it tells.
    fn may_want(&self, log: &Entry) -> bool {
        let began_before = |until: Timestamp| log.created.0 < until.0.saturating_add(SKEW);
        self.since.is_none_or(|since| since.0 <= log.updated.0.saturating_add(SKEW))
            && (log.meta.kind == Kind::Trail || self.until.is_none_or(began_before))
    }
}

/// The entries of an account's runs, newest run first.
pub(crate) async fn trail(store: Arc<dyn Store>, wanted: Wanted) -> Result<Entries, Status> {
    let Wanted { account, runs, of, before, filter } = wanted;
    let filter = Arc::new(filter);
    let logs = if of.is_empty() {
        let before = match before.is_empty() {
            true => None,
            false => Some(find(&*store, &account, before).await?.number),
        };
        newest(Arc::clone(&store), account.clone(), before, Arc::clone(&filter))
    } else {
        let found = find(&*store, &account, of).await?;
        let logs = match found.meta.kind {
            Kind::Session => runs_of(&*store, &found.log).await.map_err(|error| unavailable(&error))?,
            Kind::Run | Kind::Trail | Kind::Agent | Kind::Image => vec![found],
        };
        stream::iter(logs.into_iter().map(Ok)).boxed()
    };
    let entries = move |entry: Entry| {
        let (store, filter) = (Arc::clone(&store), Arc::clone(&filter));
        match entry.meta.kind {
            Kind::Trail => kept_trail(store, entry, filter),
            Kind::Run | Kind::Session | Kind::Agent | Kind::Image => {
                run_trail(store, account.clone(), entry.log, filter)
            }
        }
    };
    Ok(of_some(logs, runs, entries))
}

/// A run or a session of an account, or what is kept of the run. What is another account's does not exist.
async fn find(store: &dyn Store, account: &str, id: String) -> Result<Entry, Status> {
    for log in [id.clone(), wire::kept_trail(&id)] {
        match store.entry(&LogId::new(log)).await {
            Ok(entry) if entry.meta.account == account => return Ok(entry),
            Ok(_) | Err(store::Error::UnknownLog(_) | store::Error::BadName(_)) => {}
            Err(error) => return Err(unavailable(&error)),
        }
    }
    Err(Status::not_found(format!("there is no run {id}")))
}

/// The runs of an account that may have something of what is wanted, newest first.
fn newest(store: Arc<dyn Store>, account: String, before: Option<u64>, filter: Arc<Filter>) -> Logs {
    let pages = stream::try_unfold(before, move |before| {
        let (store, account) = (Arc::clone(&store), account.clone());
        async move {
            let page = page(&*store, &account, before).await.map_err(|error| unavailable(&error))?;
            let oldest = page.last().map(|entry| entry.number);
            Ok::<_, Status>(oldest.map(|oldest| (page, Some(oldest))))
        }
    });
    let wanted = move |entry: Entry| filter.may_want(&entry).then_some(Ok(entry));
    pages.map_ok(move |page| stream::iter(page.into_iter().filter_map(wanted.clone()))).try_flatten().boxed()
}

/// Runs, and what is kept of runs, newest first.
async fn page(store: &dyn Store, account: &str, before: Option<u64>) -> Result<Vec<Entry>, store::Error> {
    let mut page = Vec::new();
    for kind in [Kind::Run, Kind::Trail] {
        page.extend(store.list(Query { account: account.to_owned(), kind, before, limit: LOGS }).await?);
    }
    page.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.number));
    page.truncate(LOGS.get());
    Ok(page)
}

/// The runs of a session, newest first.
async fn runs_of(store: &dyn Store, session: &LogId) -> Result<Vec<Entry>, store::Error> {
    let (mut runs, mut after) = (Vec::<Entry>::new(), 0);
    loop {
        let page = store.read(session, after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after = last.position;
        for event in &page {
            let EventKind::SessionRecord(record) = &event.kind else { continue };
            let run = Record::decode(record.bytes.as_slice()).unwrap_or_default().run_id;
            if !run.is_empty() && runs.last().is_none_or(|last| last.log.as_str() != run) {
                match store.entry(&LogId::new(run)).await {
                    Ok(entry) => runs.push(entry),
                    // It is no longer kept.
                    Err(store::Error::UnknownLog(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    runs.reverse();
    Ok(runs)
}

/// The entries of so many logs at most that have some.
fn of_some(logs: Logs, most: u32, entries: impl Fn(Entry) -> Entries + Send + Sync + 'static) -> Entries {
    struct Walk<F> {
        logs: Logs,
        open: F,
        /// Those of the log that is read.
        entries: Entries,
        /// Whether it had one.
        counts: bool,
        left: u32,
    }
    let walk = Walk { logs, open: entries, entries: stream::empty().boxed(), counts: false, left: most };
    let entries = stream::try_unfold(walk, |mut walk| async move {
        loop {
            if let Some(entry) = walk.entries.try_next().await? {
                walk.counts = true;
                return Ok::<_, Status>(Some((entry, walk)));
            }
            walk.left = walk.left.saturating_sub(u32::from(std::mem::take(&mut walk.counts)));
            if walk.left == 0 {
                return Ok(None);
            }
            let Some(log) = walk.logs.try_next().await? else { return Ok(None) };
            walk.entries = (walk.open)(log);
        }
    });
    entries.boxed()
}

/// The entries of one log. A log that went in the meantime has none.
fn run_trail(store: Arc<dyn Store>, account: String, log: LogId, filter: Arc<Filter>) -> Entries {
    let pages = stream::try_unfold(0, move |after| {
        let (store, log) = (Arc::clone(&store), log.clone());
        async move {
            let page = match store.read(&log, after, PAGE).await {
                Ok(page) => page,
                Err(store::Error::UnknownLog(_)) => Vec::new(),
                Err(error) => return Err(unavailable(&error)),
            };
            Ok(page.last().map(|event| event.position).map(|last| (page, last)))
        }
    });
    let mut reader = AuditReader::new(account);
    let entries = pages.map_ok(|page| stream::iter(page.into_iter().map(Ok))).try_flatten();
    let entries = entries.try_filter_map(move |event| {
        let entry = reader.entry(&event).filter(|entry| filter.wants(entry, event.time));
        std::future::ready(Ok(entry))
    });
    entries.boxed()
}

/// The entries that are kept of a run. While it is there itself, they are its own.
fn kept_trail(store: Arc<dyn Store>, kept: Entry, filter: Arc<Filter>) -> Entries {
    let entries = async move {
        let id = <[u8; 32]>::try_from(kept.meta.details.as_slice()).map(BlobId);
        let Ok(id) = id else { return Ok(Vec::new()) };
        let body = match store.blob(&kept.log, id).await {
            Ok(body) => body.unwrap_or_default(),
            Err(store::Error::UnknownLog(_)) => Vec::new(),
            Err(error) => return Err(unavailable(&error)),
        };
        let entries = KeptTrail::decode(body.as_slice()).unwrap_or_default().entries;
        let Some(first) = entries.first() else { return Ok(entries) };
        match store.entry(&LogId::new(&*first.run_id)).await {
            Ok(_) => Ok(Vec::new()),
            Err(store::Error::UnknownLog(_)) => Ok(entries),
            Err(error) => Err(unavailable(&error)),
        }
    };
    let wanted = move |entry: &AuditEntry| {
        let time = entry.time.map(wire::timestamp);
        std::future::ready(time.is_some_and(|time| filter.wants(entry, time)))
    };
    let entries = stream::once(entries).map_ok(|entries| stream::iter(entries.into_iter().map(Ok)));
    entries.try_flatten().try_filter(wanted).boxed()
}

fn unavailable(error: &store::Error) -> Status {
    Status::unavailable(error.to_string())
}
