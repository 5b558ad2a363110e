//! The sessions: conversations that are stored as they happen.

use std::path::PathBuf;

use crate::input::configuration::data_path;
use crate::input::environment::variable;
use crate::shell::SuggestedCommand;
use toolwit::agent::SessionId;
use toolwit::journal::SqliteJournalStore;
use toolwit::{Error, ErrorKind, Phase};

/// The environment variable with the path to the file.
const VARIABLE: &str = "TOOLWIT_SESSIONS";

/// Selects the file with the sessions.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SessionFlags {
    /// Path to the file with the sessions [env: TOOLWIT_SESSIONS] [default: toolwit/sessions.db in the user's data directory]
    #[arg(long = "sessions", value_name = "FILE", global = true)]
    file: Option<PathBuf>,
}

impl SessionFlags {
    /// Returns the paths that no plugin may access: the file, and the directory with its locks.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let paths = self.path().map(|path| SqliteJournalStore::paths(&path));
        paths.into_iter().flatten().collect()
    }

    /// Returns the path of the file; `None` without a home directory.
    fn path(&self) -> Option<PathBuf> {
        let explicit = self.file.clone().or_else(|| variable(VARIABLE).map(PathBuf::from));
        explicit.or_else(|| data_path("sessions.db"))
    }

    /// Adds the option of these flags to a command.
    pub(crate) fn suggest(&self, command: SuggestedCommand) -> SuggestedCommand {
        match &self.file {
            Some(path) => command.option("sessions", &path.to_string_lossy()),
            None => command,
        }
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
}

/// Returns the command that lists the sessions for an unknown one.
pub(crate) fn missing(session: &SessionId) -> Error {
    let message = format!("the session `{session}` does not exist");
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion("`toolwit sessions list` lists the sessions")
}
