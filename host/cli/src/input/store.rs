//! Where the command keeps what it knows of plugins, and what they keep.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::input::environment::variable;
use toolwit::ToolwitBuilder;
use toolwit::store::{SqliteStore, StoreError};
use toolwit::{Error, ErrorKind, Phase};

/// Names the file for commands that are not told one.
const VARIABLE: &str = "TOOLWIT_STORE";

/// The name that stands for no file at all.
const MEMORY: &str = ":memory:";

/// Where the store is.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct StoreFlags {
    /// Where is kept what is known of plugins, and what they keep; :memory: for nowhere [env: TOOLWIT_STORE] [default:
    /// toolwit/store.db of the user's data]
    #[arg(long = "store", value_name = "FILE")]
    store_file: Option<PathBuf>,
}

impl StoreFlags {
    /// Gives a host its store. Without one that can be used, everything is read anew and nothing is kept: that is told, and
    /// is an error only where the store was named.
    pub(crate) async fn give(&self, builder: ToolwitBuilder) -> Result<ToolwitBuilder, Error> {
        let Some(path) = self.path() else { return Ok(builder) };
        let file = path.clone();
        let opened = tokio::task::spawn_blocking(move || open(&file)).await;
        let opened = opened.unwrap_or_else(|error| {
            Err(Error::new(
                ErrorKind::Internal,
                Phase::Registry,
                "opening the store failed unexpectedly",
            )
            .with_source(error))
        });
        let store = match opened {
            Ok(store) => store,
            Err(error) if self.named().is_some() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "everything is read anew, and plugins keep nothing");
                return Ok(builder);
            }
        };
        let builder = if path == Path::new(MEMORY) {
            builder
        } else {
            builder.protect(&path)
        };
        Ok(builder.store(store.clone()).keyvalue(store))
    }

    /// Returns the file, whether it is there or not; none without a home directory.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        use etcetera::BaseStrategy;
        let own = || {
            Some(
                etcetera::choose_base_strategy()
                    .ok()?
                    .data_dir()
                    .join("toolwit")
                    .join("store.db"),
            )
        };
        self.named().or_else(own)
    }

    fn named(&self) -> Option<PathBuf> {
        self.store_file
            .clone()
            .or_else(|| variable(VARIABLE).map(PathBuf::from))
    }
}

/// Opens the store, and makes it when it is new.
pub(crate) fn open(path: &Path) -> Result<Arc<SqliteStore>, Error> {
    let opened = match path == Path::new(MEMORY) {
        true => SqliteStore::in_memory(),
        false => SqliteStore::open(path),
    };
    opened.map(Arc::new).map_err(|error| {
        let suggestion = match &error {
            StoreError::Foreign => "name another file with `--store FILE`, or a new one",
            StoreError::Newer { .. } => "use the newer program, or name another file with `--store FILE`",
            _ => "see to the file and its directory, or name another one with `--store FILE`",
        };
        let message = format!("the store {} cannot be used: {error}", path.display());
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion(suggestion)
            .with_source(error)
    })
}
