//! A call that waits for a person, as a signed text that a client holds. It says nothing secret: it cannot be edited.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{Approval, ToolCall};
use grants::{Context, KeyRing, SigningKey};
use serde::{Deserialize, Serialize};

/// Seconds for which a call can be decided about.
const LIFE: i64 = 7 * 24 * 3600;

/// A call that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingCall {
    /// Account of the run that asks.
    pub(crate) account: String,
    /// The run that asks.
    pub(crate) run: String,
    /// The call within it.
    pub(crate) call: String,
    pub(crate) tool: String,
    /// SHA-256 of the arguments.
    pub(crate) arguments: Vec<u8>,
    /// Version of the policy that asks.
    pub(crate) policy: String,
    pub(crate) target: String,
    /// What may be allowed for later calls.
    pub(crate) prefixes: Vec<String>,
    /// When it was asked, in seconds of the Unix epoch.
    pub(crate) asked_at: i64,
    /// The session of the run; empty if it has none yet.
    #[serde(default)]
    pub(crate) session: String,
    /// Patterns for the parameters of calls like this one, where an executor offers no beginnings.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) patterns: BTreeMap<String, String>,
}

impl PendingCall {
    /// A call that a run of no session asks about.
    pub(crate) fn new(account: &str, run: &str, call: &ToolCall, approval: &Approval, asked_at: i64) -> Self {
        Self {
            account: account.to_owned(),
            run: run.to_owned(),
            call: call.id.to_string(),
            tool: call.name.clone(),
            arguments: grants::sha256(&call.arguments),
            policy: approval.policy.clone(),
            target: approval.target.clone(),
            prefixes: approval.prefixes.clone(),
            asked_at,
            session: String::new(),
            patterns: BTreeMap::new(),
        }
    }
}

/// Why a text stands for no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadToken {
    #[error("it was not made by this server, or was changed")]
    Forged,
    #[error("it has expired")]
    Expired,
    #[error("it belongs to somebody else")]
    Foreign,
}

pub(super) fn issue(key: &SigningKey, call: &PendingCall) -> String {
    // A struct of strings and numbers always has a JSON form.
    let claims = serde_json::to_vec(call).unwrap_or_default();
    let signature = key.sign(Context::PendingCall, &claims);
    format!("{}.{}", URL_SAFE_NO_PAD.encode(claims), URL_SAFE_NO_PAD.encode(signature))
}

pub(super) fn read(keys: &KeyRing, token: &str, now: i64) -> Result<PendingCall, BadToken> {
    let (claims, signature) = token.split_once('.').ok_or(BadToken::Forged)?;
    let decode = |text| URL_SAFE_NO_PAD.decode(text).map_err(|_| BadToken::Forged);
    let (claims, signature) = (decode(claims)?, decode(signature)?);
    if !keys.verifies(Context::PendingCall, &claims, &signature) {
        return Err(BadToken::Forged);
    }
    let call: PendingCall = serde_json::from_slice(&claims).map_err(|_| BadToken::Forged)?;
    if now < call.asked_at.saturating_add(LIFE) { Ok(call) } else { Err(BadToken::Expired) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn call(now: i64) -> PendingCall {
        PendingCall {
            account: "default".into(),
            run: "run_1".into(),
            call: "call_1".into(),
            tool: "bash".into(),
            arguments: grants::sha256("{}"),
            policy: "p1".into(),
            target: "host".into(),
            prefixes: vec!["mkdir".into()],
            asked_at: now,
            session: String::new(),
            patterns: BTreeMap::new(),
        }
    }

    #[test]
    fn only_an_untouched_token_counts_and_only_in_time() {
        let key = SigningKey::generate().unwrap();
        let keys: KeyRing = [key.public()].into_iter().collect();
        let token = issue(&key, &call(100));
        assert_eq!(read(&keys, &token, 100), Ok(call(100)));
        assert_eq!(read(&keys, &token, 100 + LIFE), Err(BadToken::Expired));
        let other = issue(&SigningKey::generate().unwrap(), &call(100));
        let (claims, signature) = token.split_once('.').unwrap();
        let (other_claims, _) =
            issue(&key, &call(101)).split_once('.').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        for forged in
            [&other, "", ".", "a.b", claims, &format!("{other_claims}.{signature}"), &format!("{claims}.")]
        {
            assert_eq!(read(&keys, forged, 100), Err(BadToken::Forged), "{forged}");
        }
    }
}
