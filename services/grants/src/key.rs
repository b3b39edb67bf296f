//! Ed25519 keys, as text and in files.

use std::{
    fmt,
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use aws_lc_rs::{
    digest,
    rand::{SecureRandom as _, SystemRandom},
    signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey},
};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

const KEY_BYTES: usize = 32;
const ID_BYTES: usize = 8;

/// What a signature is for: one that was made for something else never counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Context {
    /// A person's permission, for an executor.
    Grant,
    /// A call that waits for a person, for the edge that showed it.
    PendingCall,
}

impl Context {
    fn message(self, bytes: &[u8]) -> Vec<u8> {
        let name: &[u8] = match self {
            Self::Grant => b"sleuth/grant/v1\0",
            Self::PendingCall => b"sleuth/pending-call/v1\0",
        };
        [name, bytes].concat()
    }
}

/// Why a key cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is no key. It is not repeated here.
    #[error("a key is the base64 form of {KEY_BYTES} bytes")]
    Malformed,
    /// There is no randomness to make one of.
    #[error("no random bytes can be had")]
    NoRandomness,
    /// Its file cannot be read or written.
    #[error("the key file {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// Its file holds something else.
    #[error("the key file {0} holds no key: remove it to have a new one made, or put the old one back")]
    NoKeyInFile(PathBuf),
}

/// Signs. Its text is the seed, base64. Cloning gives another handle to it.
#[derive(Clone)]
pub struct SigningKey(Arc<Ed25519KeyPair>);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.public().id()).finish()
    }
}

impl SigningKey {
    /// A new key, which ends with this process.
    pub fn generate() -> Result<Self, KeyError> {
        Self::from_seed(&seed()?)
    }

    /// The key in a file. Without the file, a new one that is kept there, readable for its owner alone.
    pub fn load_or_create(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { path: path.to_owned(), source };
        match std::fs::read_to_string(path) {
            Ok(text) => text.parse().map_err(|_| KeyError::NoKeyInFile(path.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let seed = seed()?;
                match create(path, &STANDARD_NO_PAD.encode(seed)) {
                    Ok(()) => Self::from_seed(&seed),
                    // Somebody else was first.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::load_or_create(path),
                    Err(error) => Err(failed(error)),
                }
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn from_seed(seed: &[u8]) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| KeyError::Malformed)?;
        Ok(Self(Arc::new(pair)))
    }

    /// What others check its signatures with.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; KEY_BYTES];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(bytes)
    }

    /// The signature of `bytes` for one purpose.
    pub fn sign(&self, context: Context, bytes: &[u8]) -> Vec<u8> {
        self.0.sign(&context.message(bytes)).as_ref().to_vec()
    }
}

impl FromStr for SigningKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::from_seed(&decode(text)?)
    }
}

/// Checks what a [`SigningKey`] signed. Its text is base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// A short name for it.
    pub fn id(&self) -> String {
        let digest = digest::digest(&digest::SHA256, &self.0);
        digest.as_ref()[..ID_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn verifies(&self, context: Context, bytes: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        key.verify(&context.message(bytes), signature).is_ok()
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        decode(text).map(Self)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD_NO_PAD.encode(self.0))
    }
}

/// The keys whose signatures count.
#[derive(Clone, Debug, Default)]
pub struct KeyRing(Vec<PublicKey>);

impl KeyRing {
    /// Reads keys that are separated by commas.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        text.split(',').map(str::trim).filter(|key| !key.is_empty()).map(str::parse).collect()
    }

    /// Whether one of the keys has signed `bytes` for this purpose.
    pub fn verifies(&self, context: Context, bytes: &[u8], signature: &[u8]) -> bool {
        self.0.iter().any(|key| key.verifies(context, bytes, signature))
    }

    /// Whether nobody's signature counts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<PublicKey> for KeyRing {
    fn from_iter<I: IntoIterator<Item = PublicKey>>(keys: I) -> Self {
        Self(keys.into_iter().collect())
    }
}

fn decode(text: &str) -> Result<[u8; KEY_BYTES], KeyError> {
    let bytes = STANDARD_NO_PAD.decode(text.trim().trim_end_matches('=')).map_err(|_| KeyError::Malformed)?;
    bytes.try_into().map_err(|_| KeyError::Malformed)
}

fn seed() -> Result<[u8; KEY_BYTES], KeyError> {
    let mut seed = [0; KEY_BYTES];
    SystemRandom::new().fill(&mut seed).map_err(|_| KeyError::NoRandomness)?;
    Ok(seed)
}

/// Puts the whole text there or nothing: a reader never meets half a key.
fn create(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    let placed = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft)?;
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_counts_for_its_bytes_its_purpose_and_its_key() {
        let (key, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
        let signature = key.sign(Context::Grant, b"yes");
        let ring = |key: &SigningKey| KeyRing::parse(&format!(" {} ,", key.public())).unwrap();
        assert!(ring(&key).verifies(Context::Grant, b"yes", &signature));
        assert!(!ring(&key).verifies(Context::Grant, b"no", &signature));
        assert!(!ring(&key).verifies(Context::PendingCall, b"yes", &signature));
        assert!(!ring(&key).verifies(Context::Grant, b"yes", &signature[1..]));
        assert!(!ring(&other).verifies(Context::Grant, b"yes", &signature));
        assert!(!KeyRing::default().verifies(Context::Grant, b"yes", &signature));
    }

    #[test]
    fn a_kept_key_is_the_same_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/signing.key");
        let first = SigningKey::load_or_create(&path).unwrap();
        assert_eq!(SigningKey::load_or_create(&path).unwrap().public(), first.public());
        let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        std::fs::write(&path, "nonsense").unwrap();
        assert!(matches!(SigningKey::load_or_create(&path), Err(KeyError::NoKeyInFile(_))));
    }

    #[test]
    fn a_key_is_not_printed() {
        let text = STANDARD_NO_PAD.encode([7; KEY_BYTES]);
        let key: SigningKey = text.parse().unwrap();
        assert!(!format!("{key:?}").contains(&text));
    }
}
