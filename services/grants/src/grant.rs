//! Grants, signed and checked.

use aws_lc_rs::digest;
use prost::Message as _;
use prost_types::Timestamp;
use wire::executor::{Grant, SignedGrant, grant::Scope};

use crate::{Context, KeyRing, SigningKey};

/// Why a grant does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It cannot be read.
    #[error("it cannot be read")]
    Malformed,
    /// Nobody who may has signed it.
    #[error("it is not signed by a key that this executor knows")]
    Signature,
    /// It covers nothing, or says not when it ends.
    #[error("it does not say what it covers, or until when")]
    Incomplete,
    /// Its time is over.
    #[error("it has expired")]
    Expired,
}

/// Seconds within which an approved call must start.
const EXACT_LIFE: i64 = 600;
/// Seconds for which a prefix stays allowed.
const STANDING_LIFE: i64 = 24 * 3600;

/// Who decides, for whom, and when.
#[derive(Clone, Copy, Debug)]
pub struct Decider<'a> {
    /// Account of the run that asks.
    pub account: &'a str,
    /// Person or program within it.
    pub principal: &'a str,
    /// Seconds of the Unix epoch.
    pub now: i64,
}

/// Allows what a scope covers: 10 minutes for one execution, a day for the beginnings of commands. The result is an
/// encoded [`SignedGrant`].
pub fn allow(key: &SigningKey, scope: Scope, by: Decider<'_>) -> Vec<u8> {
    let life = match &scope {
        Scope::Exact(_) => EXACT_LIFE,
        Scope::Standing(_) => STANDING_LIFE,
    };
    let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
    let grant = Grant {
        account: by.account.to_owned(),
        principal: by.principal.to_owned(),
        issued_at: at(by.now),
        expires_at: at(by.now.saturating_add(life)),
        scope: Some(scope),
    };
    sign(key, &grant)
}

fn sign(key: &SigningKey, grant: &Grant) -> Vec<u8> {
    let grant = grant.encode_to_vec();
    let signature = key.sign(Context::Grant, &grant);
    let signed = SignedGrant { grant: grant.into(), signature: signature.into(), key_id: key.public().id() };
    signed.encode_to_vec()
}

/// Reads an encoded [`SignedGrant`] that counts at `now`, in seconds of the Unix epoch. Whether it covers a call is
/// for the caller to see.
pub fn verify(keys: &KeyRing, signed: &[u8], now: i64) -> Result<Grant, Invalid> {
    let signed = SignedGrant::decode(signed).map_err(|_| Invalid::Malformed)?;
    if !keys.verifies(Context::Grant, &signed.grant, &signed.signature) {
        return Err(Invalid::Signature);
    }
    let grant = Grant::decode(signed.grant).map_err(|_| Invalid::Malformed)?;
    let (Some(expires), Some(_)) = (&grant.expires_at, &grant.scope) else {
        return Err(Invalid::Incomplete);
    };
    if expires.seconds <= now {
        return Err(Invalid::Expired);
    }
    Ok(grant)
}

/// The digest by which a grant names the arguments that it covers.
pub fn sha256(text: impl AsRef<[u8]>) -> Vec<u8> {
    digest::digest(&digest::SHA256, text.as_ref()).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use wire::executor::StandingScope;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn grant(expires: i64) -> Grant {
        let scope = StandingScope {
            session: "s".into(),
            tool: "bash".into(),
            prefixes: vec!["uptime".into()],
            rules: Vec::new(),
            target: String::new(),
            profile: String::new(),
        };
        Grant {
            account: "default".into(),
            principal: "ada".into(),
            issued_at: Some(Timestamp { seconds: NOW, nanos: 0 }),
            expires_at: Some(Timestamp { seconds: expires, nanos: 0 }),
            scope: Some(Scope::Standing(scope)),
        }
    }

    #[test]
    fn only_what_was_signed_counts_and_only_in_time() {
        let key = SigningKey::generate().unwrap();
        let keys: KeyRing = [key.public()].into_iter().collect();
        let signed = sign(&key, &grant(NOW + 1));
        assert_eq!(verify(&keys, &signed, NOW), Ok(grant(NOW + 1)));
        assert_eq!(verify(&keys, &signed, NOW + 1), Err(Invalid::Expired));
        assert_eq!(verify(&KeyRing::default(), &signed, NOW), Err(Invalid::Signature));
        assert_eq!(verify(&keys, b"\xff", NOW), Err(Invalid::Malformed));

        let mut edited = SignedGrant::decode(signed.as_slice()).unwrap();
        edited.grant = grant(NOW + 1_000).encode_to_vec().into();
        assert_eq!(verify(&keys, &edited.encode_to_vec(), NOW), Err(Invalid::Signature));

        let endless = Grant { expires_at: None, ..grant(0) };
        assert_eq!(verify(&keys, &sign(&key, &endless), NOW), Err(Invalid::Incomplete));
        let empty = Grant { scope: None, ..grant(NOW + 1) };
        assert_eq!(verify(&keys, &sign(&key, &empty), NOW), Err(Invalid::Incomplete));
    }
}
