//! Runs as objects: started, listed, watched, cancelled.

mod audience;
mod budget;
mod decided;
mod found;
mod handover;
mod heart;
mod mail;
mod open_calls;
mod progress;
mod question;
mod reader;
mod recover;
mod settle;
mod start;
mod steer;
mod summary;
mod table;

use std::sync::Arc;

use domain::LogId;
use model::Catalogue;
use store::{OwnerId, Store};
use tokio::time::{Instant, timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument as _;

use crate::{
    config::Config,
    driver::{Driven, Driver},
    telemetry,
    tools::{Offer, Summarizers, Tools},
};

pub(crate) use audience::Audience;
pub(crate) use budget::OverBudget;
pub(crate) use found::{Found, Reading};
pub(crate) use handover::give_up;
use heart::Heart;
pub(crate) use mail::Mail;
pub(crate) use open_calls::{Brought, Decision};
pub(crate) use progress::Progress;
pub(crate) use question::{Question, Refusal};
use reader::Reader;
pub(crate) use settle::NotSettled;
pub(crate) use steer::NotSteered;
use table::{Most, Seat, Table};

/// All runs of this agent.
pub(crate) struct Runs {
    config: Config,
    models: Catalogue,
    tools: Tools,
    log: Arc<dyn Store>,
    heart: Heart,
    tasks: TaskTracker,
    closing: CancellationToken,
    /// Cancelled once no run of another agent is taken over here any more.
    draining: CancellationToken,
    /// Cancelled when the runs here are left to another agent.
    leaving: CancellationToken,
    table: Arc<Table>,
}

impl Runs {
    pub(crate) fn new(config: Config, models: Catalogue, tools: Tools, log: Arc<dyn Store>) -> Self {
        Self {
            config,
            models,
            tools,
            heart: Heart::new(Arc::clone(&log)),
            log,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            draining: CancellationToken::new(),
            leaving: CancellationToken::new(),
            table: Arc::default(),
        }
    }

    fn most(&self) -> Most {
        let Config { max_runs, max_account_runs, max_key_runs, .. } = self.config;
        Most { runs: max_runs, of_account: max_account_runs, of_key: max_key_runs }
    }

    /// This agent as an owner of logs.
    pub(crate) async fn owner(&self) -> Result<OwnerId, store::Error> {
        self.heart.beats().await
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn models(&self) -> &Catalogue {
        &self.models
    }

    pub(crate) fn tools(&self) -> &Tools {
        &self.tools
    }

    pub(crate) fn log(&self) -> Arc<dyn Store> {
        Arc::clone(&self.log)
    }

    fn spawn(&self, driver: Driver, progress: Arc<Progress>, seat: Seat) {
        let span = tracing::info_span!(
            "invoke_agent",
            otel.name = "invoke_agent sleuth",
            gen_ai.operation.name = "invoke_agent",
            gen_ai.agent.name = "sleuth",
            sleuth.run.id = %progress.id,
        );
        let (began, store, closing) = (Instant::now(), self.log(), self.closing.clone());
        let task = async move {
            telemetry::run_started();
            let driven = driver.drive().await;
            telemetry::run_ended(&progress, began.elapsed());
            match driven {
                Driven::ToTheEnd => {
                    keep(&*store, &progress).await;
                    seat.keep_listed();
                }
                Driven::Gone => drop(seat),
                Driven::Left(lease) => {
                    // In this order: whoever comes back to the run looks for it elsewhere.
                    drop(seat);
                    progress.leave();
                    give_up(&*store, lease, &closing).await;
                }
            }
        };
        self.tasks.spawn(task.instrument(span));
    }

    fn summarizers(&self, offer: &Offer) -> Summarizers {
        Summarizers::new(&offer.summarize, &self.models, self.config.fast_model.as_deref())
    }

    fn tool_result_tokens(&self, context_window: u64) -> u64 {
        let share = context_window.saturating_mul(self.config.tool_result_percent) / 100;
        share.min(self.config.tool_result_tokens)
    }

    /// Lets the runs end, with some patience. What is left then is left to another agent where the log outlives
    /// this one, and cancelled where it does not.
    pub(crate) async fn shutdown(&self) {
        self.draining.cancel();
        self.tasks.close();
        if timeout(self.config.drain_time, self.table.rests()).await.is_err() && self.config.hands_over {
            self.leaving.cancel();
        }
        self.closing.cancel();
        self.tasks.wait().await;
        self.heart.stops().await;
    }
}

/// Keeps with the log of a run what lists show of it.
async fn keep(store: &dyn Store, run: &Progress) {
    let kept = store.describe(&LogId::from(&run.id), run.question.clone(), summary::kept(run)).await;
    if let Err(error) = kept {
        tracing::warn!(%error, run = %run.id, "the summary of a run is not kept");
    }
}
