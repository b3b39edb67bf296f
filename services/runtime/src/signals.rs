//! The wish of the operating system that the process ends.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What shells say of a program that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// A token that is cancelled at the first SIGTERM or SIGINT. A SIGINT after that ends the process at once: someone is
/// waiting at a terminal.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn shutdown() -> std::io::Result<CancellationToken> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("told to end");
        cancelled.cancel();
        interrupt.recv().await;
        std::process::exit(INTERRUPTED)
    });
    Ok(token)
}
