//! New keys: an id, and a text that is shown once.

use aws_lc_rs::rand;
use runtime::token::Token;
use store::CredentialKind;

/// Random bytes of an id, and of a secret.
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// The operating system gives no randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no randomness for a key")]
pub struct NoRandomness;

/// A new key: its text, and what it is recognised by.
pub(crate) fn generate(kind: CredentialKind) -> Result<(String, Token), NoRandomness> {
    let prefix = match kind {
        CredentialKind::Key => "slk",
        CredentialKind::JoinToken => "slj",
        CredentialKind::Cluster => "slc",
    };
    let text = format!("{prefix}_{}_{}", random::<ID_BYTES>()?, random::<SECRET_BYTES>()?);
    let token = Token::read(&text).ok_or(NoRandomness)?;
    Ok((text, token))
}

fn random<const N: usize>() -> Result<String, NoRandomness> {
    let mut bytes = [0; N];
    rand::fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_can_be_read() {
        for kind in [CredentialKind::Key, CredentialKind::JoinToken, CredentialKind::Cluster] {
            let (text, token) = generate(kind).unwrap();
            assert_eq!(Token::read(&text), Some(token.clone()));
            assert_ne!(generate(kind).unwrap().1.id(), token.id());
        }
    }
}
