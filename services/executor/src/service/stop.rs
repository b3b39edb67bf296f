//! Why an execution is stopped from here, and what is said of it.

use std::time::Duration;

use wire::executor::{Clock, Ending};

/// Why an execution was stopped from here.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// It waited too long for its turn.
    Queued(Duration),
    /// The tool's own time is up.
    TooSlow(Duration),
    /// It wrote nothing for too long.
    Silent(Duration),
    /// The run's time is up.
    RunOver(Duration),
    /// It wrote more than it may.
    TooMuch(u64),
    /// The files of its session take more than they may.
    Overflows(u64),
    Cancelled,
    /// The executor ends. What only reads may begin again at another.
    Leaving {
        reads: bool,
    },
    /// Nobody reads it any more.
    Orphaned(Duration),
}

impl Stop {
    pub(super) fn ending(self) -> Ending {
        match self {
            Self::Queued(_) | Self::TooSlow(_) | Self::Silent(_) | Self::RunOver(_) => Ending::TimedOut,
            Self::TooMuch(_) | Self::Overflows(_) => Ending::OutputLimit,
            Self::Leaving { reads: true } => Ending::Lost,
            Self::Cancelled | Self::Leaving { reads: false } | Self::Orphaned(_) => Ending::Cancelled,
        }
    }

    pub(super) fn clock(self) -> Clock {
        match self {
            Self::Queued(_) => Clock::Queue,
            Self::TooSlow(_) => Clock::Run,
            Self::Silent(_) => Clock::Idle,
            Self::RunOver(_) => Clock::WholeRun,
            Self::TooMuch(_)
            | Self::Overflows(_)
            | Self::Cancelled
            | Self::Leaving { .. }
            | Self::Orphaned(_) => Clock::Unspecified,
        }
    }

    pub(super) fn error(self, invocation: &str) -> String {
        match self {
            Self::Queued(time) => format!(
                "Error: Command '{invocation}' was not run: it waited {} seconds for its turn.",
                time.as_secs()
            ),
            Self::TooSlow(time) => {
                format!("Error: Command '{invocation}' timed out after {} seconds.", time.as_secs())
            }
            Self::Silent(time) => format!(
                "Error: Command '{invocation}' was stopped, because it had written nothing for {} seconds.",
                time.as_secs()
            ),
            Self::RunOver(time) => format!(
                "Error: Command '{invocation}' was stopped after {:.1} seconds, because the time of the whole run is up.",
                time.as_secs_f64()
            ),
            Self::TooMuch(bytes) => format!(
                "Error: Command '{invocation}' was stopped, because it had written more than {bytes} bytes. Ask for \
                 less."
            ),
            Self::Overflows(bytes) => format!(
                "Error: Command '{invocation}' was stopped, because the workspace held more than {bytes} bytes."
            ),
            Self::Cancelled => format!("Error: Command '{invocation}' was cancelled."),
            Self::Leaving { .. } => {
                format!("Error: Command '{invocation}' was stopped, because its executor is shutting down.")
            }
            Self::Orphaned(grace) => format!(
                "Error: Command '{invocation}' was cancelled, because nobody had read its output for {} seconds.",
                grace.as_secs()
            ),
        }
    }
}
