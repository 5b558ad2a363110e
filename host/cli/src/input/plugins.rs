//! Where plugins are found.

use std::path::{Path, PathBuf};

use super::environment::variable;
use super::grants::GrantFlags;
use super::limits::LimitFlags;
use super::secrets::SecretFlags;
use super::store::StoreFlags;
use toolwit::registry::DynamicDiscovery;
use toolwit::{Error, ErrorKind, Phase};
use toolwit::{Toolwit, ToolwitBuilder};

/// Names directories, separated as in `PATH`, for commands that are not told any.
const VARIABLE: &str = "TOOLWIT_PLUGINS";

/// The directory for commands that are told nothing at all.
const DEFAULT: &str = "tools";

/// Where plugins are found.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PluginFlags {
    /// A directory of plugins, or one `.wasm` file; may be given several times [env: TOOLWIT_PLUGINS] [default: tools]
    #[arg(long = "plugins", value_name = "DIR")]
    places: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

/// What plugins are called under.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct AuthorityFlags {
    #[command(flatten)]
    pub(crate) grants: GrantFlags,
    #[command(flatten)]
    pub(crate) secrets: SecretFlags,
}

impl PluginFlags {
    /// Reads the plugins, to look at them: nothing is granted. Nothing is compiled and nothing runs.
    pub(crate) async fn load(&self, limits: &LimitFlags) -> Result<Toolwit, Error> {
        let builder = self.builder(limits).await?;
        builder.dynamic_discovery(DynamicDiscovery::Never).build().await
    }

    /// Reads the plugins, to call them under what is granted. None is asked for tools yet.
    pub(crate) async fn load_granted(&self, limits: &LimitFlags, authority: &AuthorityFlags) -> Result<Toolwit, Error> {
        let builder = self.granted(limits, authority).await?;
        builder.dynamic_discovery(DynamicDiscovery::Never).build().await
    }

    /// Describes a host for calls under what is granted.
    pub(crate) async fn granted(
        &self,
        limits: &LimitFlags,
        authority: &AuthorityFlags,
    ) -> Result<ToolwitBuilder, Error> {
        let mut builder = self.builder(limits).await?;
        if let Some(grants) = authority.grants.existing() {
            builder = builder.grants(grants);
        }
        if let Ok(secrets) = authority.secrets.path() {
            builder = builder.secrets(secrets);
        }
        Ok(builder)
    }

    async fn builder(&self, limits: &LimitFlags) -> Result<ToolwitBuilder, Error> {
        let mut builder = Toolwit::builder().limits(limits.request());
        for place in self.places()? {
            builder = builder.plugins(place);
        }
        self.store.give(builder).await
    }

    /// Says where a package is put: the one directory that is named, else `tools`, which need not be there yet.
    pub(crate) fn destination(&self) -> Result<PathBuf, Error> {
        let named = match self.places.is_empty() {
            true => named_by_environment(),
            false => self.places.clone(),
        };
        match named.as_slice() {
            [] => Ok(DEFAULT.into()),
            [place] if !place.is_file() => Ok(place.clone()),
            _ => Err(Error::new(
                ErrorKind::Configuration,
                Phase::Registry,
                "it is not clear to which directory the package goes",
            )
            .with_suggestion("name one directory with `--plugins DIR`")),
        }
    }

    /// Says where to look: what the flags name, else the environment, else the directory `tools` when it is there.
    pub(crate) fn places(&self) -> Result<Vec<PathBuf>, Error> {
        if !self.places.is_empty() {
            return Ok(self.places.clone());
        }
        let named = named_by_environment();
        if !named.is_empty() {
            return Ok(named);
        }
        match Path::new(DEFAULT).is_dir() {
            true => Ok(vec![DEFAULT.into()]),
            false => Err(Error::new(
                ErrorKind::Configuration,
                Phase::Registry,
                format!("no plugins were named, and there is no directory `{DEFAULT}` here"),
            )
            .with_suggestion(format!(
                "name a directory of plugins with `--plugins DIR`, or set {VARIABLE}"
            ))),
        }
    }
}

fn named_by_environment() -> Vec<PathBuf> {
    let value = variable(VARIABLE).unwrap_or_default();
    std::env::split_paths(&value)
        .filter(|place| !place.as_os_str().is_empty())
        .collect()
}
