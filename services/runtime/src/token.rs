//! The text of keys that are kept in a store: `slk_ID_SECRET`. The id finds a key, the digest of the text proves it.

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// What such a text begins with: keys of clients, tokens to join, and keys of clusters.
pub const PREFIXES: [&str; 3] = ["slk_", "slj_", "slc_"];

/// The longest text, in bytes.
const LONGEST: usize = 256;

/// A text that has the form of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    id: String,
    digest: [u8; 32],
}

impl Token {
    /// Reads a text; `None` if it cannot be a key that is kept in a store.
    pub fn read(text: &str) -> Option<Self> {
        let rest = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix))?;
        let (id, secret) = rest.split_once('_')?;
        let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let digest = Sha256::digest(text).into();
        (text.len() <= LONGEST && plain(id) && plain(secret)).then(|| Self { id: id.to_owned(), digest })
    }

    /// The key's id. It is no secret.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// SHA-256 of the text.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }
}

/// Whether two digests are the same. Takes the same time wherever they differ.
pub fn same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_form_is_read() {
        let token = Token::read("slk_01ab_SECRET").unwrap();
        assert_eq!(token.id(), "01ab");
        assert!(same(&token.digest(), &Sha256::digest("slk_01ab_SECRET")));
        assert!(!same(&token.digest(), &Sha256::digest("slk_01ab_SECREt")));
        for other in
            ["", "secret", "slk_", "slk_01ab", "slk_01ab_", "slk__x", "slx_01ab_x", "slk_01ab_x y", "slk_a_é"]
        {
            assert_eq!(Token::read(other), None, "{other}");
        }
        assert_eq!(Token::read(&format!("slk_a_{}", "x".repeat(LONGEST))), None);
    }
}
