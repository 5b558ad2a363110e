//! The stored logins of the user at MCP servers.

use std::path::PathBuf;

use zeroize::Zeroizing;

use super::configuration::data_path;
use toolwit::mcp::LoginStore;
use toolwit::sandbox::SecretStore;
use toolwit::tool::file::LockedFile;
use toolwit::{Error, ErrorKind, Phase};

/// The name of the file with the logins, in the data directory. Only its owner may read it.
const FILE_NAME: &str = "mcp-logins.toml";

/// The name of the directory with a lock file for each login, in the data directory. A renewal of a login holds its
/// lock.
const LOCK_DIRECTORY_NAME: &str = "mcp-logins";

/// The logins of the user, in a file of the data directory that only the user may read.
pub(super) struct UserLogins {
    store: SecretStore,
    lock_directory: PathBuf,
}

impl UserLogins {
    /// Returns the logins, or `None` without a home directory.
    pub(super) fn find() -> Option<Self> {
        Some(Self {
            store: SecretStore::new(data_path(FILE_NAME)?),
            lock_directory: data_path(LOCK_DIRECTORY_NAME)?,
        })
    }
}

impl LoginStore for UserLogins {
    fn login(&self, key: &str) -> Result<Option<Zeroizing<String>>, Error> {
        Ok(self.store.value(key)?)
    }

    fn store(&self, key: &str, login: &str) -> Result<(), Error> {
        Ok(self.store.set(key, login).map(drop)?)
    }

    fn remove(&self, key: &str) -> Result<bool, Error> {
        Ok(self.store.remove(key)?)
    }

    fn begin_renewal(&self, key: &str) -> Result<Box<dyn Send>, Error> {
        let path = self.lock_directory.join(key);
        let lock = LockedFile::acquire(&path).map_err(|error| {
            let message = format!("`{}` cannot be locked: {error}", path.display());
            Error::new(ErrorKind::Io, Phase::Registry, message)
        })?;
        Ok(Box::new(lock))
    }
}
