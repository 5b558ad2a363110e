//! The secret key of the user. With it, commands recognize files that the same user wrote.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use super::configuration::data_path;
use toolwit::tool::file::LockedFile;

/// Length of the key, in bytes. A SHA-256 digest has the same length.
const KEY_BYTES: usize = 32;

/// A secret key of the user on this machine. A text with a valid [authentication code](Self::code) was written by a
/// command of this user, because no other user can read the key.
pub(crate) struct UserKey(hmac::Key);

impl UserKey {
    /// Returns the path of the key file; `None` without a home directory. Plugins cannot access the file, because it is in
    /// the user's data directory.
    pub(crate) fn path() -> Option<PathBuf> {
        data_path("user.key")
    }

    /// Reads the key, and creates it if it does not exist. Returns `None` if the key cannot be read or created.
    pub(crate) fn load() -> Option<Self> {
        let key = read_or_create(&Self::path()?).ok()?;
        Some(Self::from_bytes(key))
    }

    pub(super) fn from_bytes(key: [u8; KEY_BYTES]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }

    /// Returns the authentication code of a text (HMAC-SHA-256, in hexadecimal digits).
    pub(crate) fn code(&self, text: &str) -> String {
        let code = hmac::sign(&self.0, text.as_bytes());
        code.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns whether `code` is the authentication code of `text`. Compares in constant time.
    pub(crate) fn verifies(&self, text: &str, code: &str) -> bool {
        let bytes: Option<Vec<u8>> = code
            .as_bytes()
            .chunks(2)
            .map(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())
            .collect();
        bytes.is_some_and(|bytes| hmac::verify(&self.0, text.as_bytes(), &bytes).is_ok())
    }
}

/// Reads the key, or creates it. Replaces a key of the wrong length, for example after a full disk truncated the file.
fn read_or_create(path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    let file = LockedFile::acquire(path)?;
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    let mut key = [0; KEY_BYTES];
    SystemRandom::new()
        .fill(&mut key)
        .map_err(|_| io::Error::other("the system provides no random numbers"))?;
    file.replace(&key)?;
    Ok(key)
}

/// Reads the key. Returns `None` if the file does not exist, or if its length is not [`KEY_BYTES`].
fn read(path: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    match fs::read(path) {
        Ok(key) => Ok(key.try_into().ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn key_is_created_once_and_verifies_only_its_codes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data/user.key");
        let created = read_or_create(&path).unwrap();
        assert_eq!(read_or_create(&path).unwrap(), created);
        let (key, other_key) = (UserKey::from_bytes(created), UserKey::from_bytes([7; KEY_BYTES]));
        let code = key.code("text");
        assert!(key.verifies("text", &code));
        assert!(!key.verifies("other text", &code) && !other_key.verifies("text", &code));
        for invalid in ["", "0", "zz", "é", &code[2..]] {
            assert!(!key.verifies("text", invalid), "{invalid}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn replaced_key_is_readable_by_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("user.key");
        fs::write(&path, "short").unwrap();
        read_or_create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
