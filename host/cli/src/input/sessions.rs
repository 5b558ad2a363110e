//! The sessions: conversations that are stored as they happen.

use std::path::PathBuf;

use crate::input::configuration::data_path;
use crate::input::environment::variable;
use crate::input::user_key::UserKey;
use crate::shell::SuggestedCommand;
use toolwit::agent::SessionId;
use toolwit::journal::SqliteJournalStore;
use toolwit::{Error, ErrorKind, Phase};

/// The environment variable with the path to the sessions file. The option `--sessions` takes precedence.
const VARIABLE: &str = "TOOLWIT_SESSIONS";

/// The name of the file in the user's data directory.
const FILE_NAME: &str = "sessions.db";

/// Options for the file with the sessions.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SessionFlags {
    /// Path to the file with the sessions [env: TOOLWIT_SESSIONS] [default: toolwit/sessions.db in the user's data
    /// directory]
    #[arg(long = "sessions", value_name = "FILE", global = true)]
    file: Option<PathBuf>,
}

impl SessionFlags {
    /// Returns the paths that no plugin may access: the file, and the directory with its locks.
    pub(crate) fn protected_paths(&self) -> Vec<PathBuf> {
        let paths = self.path().map(|path| SqliteJournalStore::paths(&path));
        paths.into_iter().flatten().collect()
    }

    /// Returns the path of the file; `None` without a home directory.
    fn path(&self) -> Option<PathBuf> {
        let explicit = self.file.clone().or_else(|| variable(VARIABLE).map(PathBuf::from));
        explicit.or_else(|| data_path(FILE_NAME))
    }

    /// Adds `--sessions FILE` to a suggested command, if the option is set.
    pub(crate) fn add_to_command(&self, command: SuggestedCommand) -> SuggestedCommand {
        match &self.file {
            Some(path) => command.option("sessions", &path.to_string_lossy()),
            None => command,
        }
    }

    /// Returns the error for a session that does not exist, with the command that lists the existing sessions.
    pub(crate) fn missing_session_error(&self, session: &SessionId) -> Error {
        let list = self.add_to_command(SuggestedCommand::new("sessions").operand("list"));
        let message = format!("the session `{session}` does not exist");
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion(format!("`{list}` lists the sessions"))
    }

    /// Opens the file, and creates it if it does not exist.
    pub(crate) async fn open(&self) -> Result<SqliteJournalStore, Error> {
        let path = self.path().ok_or_else(|| {
            let message = "the data directory is unknown, because there is no home directory";
            Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion("pass `--sessions FILE`")
        })?;
        SqliteJournalStore::open(&path).await.map_err(|error| {
            let message = format!("the sessions in {} cannot be used: {error}", path.display());
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("pass another file with `--sessions FILE`")
                .with_source(error)
        })
    }

    /// Opens the file, if this user created it on this machine or accepted it. Use this method to continue a session or to
    /// answer its questions: then the options and approvals in the file apply.
    ///
    /// # Errors
    /// If the file cannot be opened. Also if the user has not accepted the file, and nothing proves that this user
    /// created it on this machine.
    pub(crate) async fn open_trusted(&self) -> Result<SqliteJournalStore, Error> {
        let store = self.open().await?;
        let origin = store.origin().await?;
        let key = UserKey::load();
        let is_own = match (&key, &origin.code) {
            (Some(key), Some(code)) => key.verifies(&origin_text(&origin.id), code),
            _ => false,
        };
        if is_own {
            return Ok(store);
        }
        // A file without sessions contains no options or approvals of another user. Earlier versions of Toolwit wrote no
        // code: of their files, only the file in the user's data directory counts as a file of this user.
        let is_claimable = origin.is_empty || (origin.code.is_none() && self.path() == data_path(FILE_NAME));
        match key.filter(|_| is_claimable) {
            Some(key) => store.store_origin_code(key.code(&origin_text(&origin.id))).await?,
            None => return Err(self.foreign_error()),
        }
        Ok(store)
    }

    /// Stores an authentication code of this user in the file, so that [`open_trusted`](Self::open_trusted) opens the file.
    ///
    /// # Errors
    /// If the file has no sessions, or cannot be opened or written, or the key of the user cannot be created.
    pub(crate) async fn accept(&self) -> Result<(), Error> {
        let store = self.open().await?;
        let key = UserKey::load().ok_or_else(|| {
            let message = "the key of the user cannot be read or created in the data directory";
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
        })?;
        let origin = store.origin().await?;
        if origin.is_empty {
            let message = format!(
                "{} has no sessions to accept",
                self.path().unwrap_or_default().display()
            );
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message));
        }
        Ok(store.store_origin_code(key.code(&origin_text(&origin.id))).await?)
    }

    fn foreign_error(&self) -> Error {
        let path = self.path().unwrap_or_default();
        let message = format!(
            "nothing proves that this user created the sessions in {} on this machine: the options and approvals in it can be those of another user",
            path.display()
        );
        let accept = self.add_to_command(SuggestedCommand::new("sessions accept"));
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(format!(
            "`toolwit sessions show` only reads the file; if you trust its sessions, accept them with `{accept}`"
        ))
    }
}

/// Returns the text that the authentication code in a sessions file covers. `id` is the random id of the file. A valid
/// code proves that the user created or accepted the file.
fn origin_text(id: &str) -> String {
    format!("sessions file: {id}")
}
