//! What other processes write: the database tells, and is asked now and then in case it could not.

use std::{sync::Arc, time::Duration};

use domain::LogId;
use futures_util::{StreamExt as _, stream};
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, sleep},
};
use tokio_postgres::{AsyncMessage, Client};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Database,
    appender::{CHANNEL, told},
    connect::Address,
};
use crate::{Error, Head, heads::Heads, sql};

/// Time between two questions while the database tells by itself, and while it does not.
const SELDOM: Duration = Duration::from_secs(10);
const OFTEN: Duration = Duration::from_millis(500);
/// What was told and is not looked at yet; the connection waits then.
const QUEUE: usize = 1024;

/// A task with one connection. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    _task: AbortOnDropHandle<()>,
}

impl Listener {
    pub(super) fn start(address: Address, database: Database, heads: Arc<Heads>) -> Self {
        Self { _task: AbortOnDropHandle::new(tokio::spawn(listen(address, database, heads))) }
    }
}

async fn listen(address: Address, database: Database, heads: Arc<Heads>) {
    loop {
        match Ear::open(&address).await {
            Ok(ear) => ear.hear(&database, &heads).await,
            Err(error) => tracing::debug!(%error, "the database cannot tell what others write; it is asked"),
        }
        ask(&database, &heads).await;
        sleep(OFTEN).await;
    }
}

/// A connection that is told.
struct Ear {
    told: mpsc::Receiver<(LogId, Head)>,
    /// Listening ends with it.
    _client: Client,
    _connection: AbortOnDropHandle<()>,
}

impl Ear {
    async fn open(address: &Address) -> Result<Self, tokio_postgres::Error> {
        let (client, mut connection) = address.config.connect(address.tls.clone()).await?;
        let (tell, told_to) = mpsc::channel(QUEUE);
        let connection = tokio::spawn(async move {
            let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if let AsyncMessage::Notification(notification) = message
                    && let Some(news) = told(notification.payload())
                    && tell.send(news).await.is_err()
                {
                    return;
                }
            }
        });
        let connection = AbortOnDropHandle::new(connection);
        client.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
        Ok(Self { told: told_to, _client: client, _connection: connection })
    }

    /// Listens until the connection is lost.
    async fn hear(mut self, database: &Database, heads: &Heads) {
        let mut questions = interval(SELDOM);
        questions.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                news = self.told.recv() => match news {
                    Some((log, head)) => heads.advance(&log, head),
                    None => return,
                },
                // The first one at once: for what was written before this connection listened.
                _ = questions.tick() => ask(database, heads).await,
            }
        }
    }
}

/// Asks how far the logs are that somebody waits for.
async fn ask(database: &Database, heads: &Heads) {
    let watched = heads.watched();
    if watched.is_empty() {
        return;
    }
    match found(database, &watched).await {
        Ok(found) => {
            for (log, head) in watched.iter().zip(found) {
                match head {
                    Some(head) => heads.advance(log, head),
                    None => heads.close(log),
                }
            }
        }
        Err(error) => tracing::warn!(%error, "what others write cannot be seen"),
    }
}

async fn found(database: &Database, logs: &[LogId]) -> Result<Vec<Option<Head>>, Error> {
    let ids: Vec<_> = logs.iter().map(LogId::as_str).collect();
    let ids = &ids;
    database
        .run(|client, _| async move {
            let select = client
                .prepare_cached(
                    "SELECT l.position, l.inbox FROM unnest($1::text[]) WITH ORDINALITY AS asked (id, nth)
                     LEFT JOIN sleuth.logs l ON l.id = asked.id ORDER BY nth",
                )
                .await?;
            let rows = client.query(&select, &[ids]).await?;
            let head = |row: &tokio_postgres::Row| {
                let (position, inbox): (Option<i64>, Option<i64>) = (row.get(0), row.get(1));
                Some(Head { position: sql::uint(position?), inbox: sql::uint(inbox?) })
            };
            Ok(rows.iter().map(head).collect())
        })
        .await
}
