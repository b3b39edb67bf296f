//! The key that signs what people approve.

use anyhow::Context as _;
use grants::SigningKey;

use crate::settings::{DataDir, variable};

const VARIABLE: &str = "SLEUTH_SIGNING_KEY";
const FILE: &str = "signing.key";

/// The key of the environment, or the one that is kept in the data folder, or one for the life of this process.
pub(crate) fn signing_key(data: Option<&DataDir>) -> anyhow::Result<SigningKey> {
    if let Some(text) = variable(VARIABLE) {
        return text.parse().context(VARIABLE);
    }
    let kept = data.map(|data| (data.named, SigningKey::load_or_create(&data.path.join(FILE))));
    match kept {
        Some((_, Ok(key))) => Ok(key),
        Some((true, Err(error))) => Err(error).context("--data-dir"),
        Some((false, Err(error))) => {
            tracing::warn!(%error, "approvals will not outlive this process: set --data-dir or {VARIABLE}");
            Ok(SigningKey::generate()?)
        }
        None => Ok(SigningKey::generate()?),
    }
}
