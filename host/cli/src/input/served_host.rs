//! The host whose tools a server offers.

use std::path::{Path, PathBuf};

use super::approvals::ApprovalFlags;
use super::exposure::ExposureFlag;
use super::host_files::require_not_written_by_plugin;
use super::interceptors::InterceptorFlags;
use super::limits::LimitFlags;
use super::plugins::{GrantAndSecretFlags, PluginFlags};
use super::vectors::with_word_vectors;
use crate::output::page::counted;
use crate::output::printer::Printer;
use toolwit::registry::{Registry, WatchOptions};
use toolwit::tool::ApprovalPolicy;
use toolwit::{Error, ErrorKind, Exposure, Phase, Toolwit};
use toolwit_mcp_server::ServedContent;

/// Maximum number of broken packages that a server names at its start.
const BROKEN_SHOWN_MAX: usize = 5;

/// Selects the tools that clients may call, their grants and their limits.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ServedHostFlags {
    /// Tools that a client sees at the start [default: all if there are few, else search]
    #[arg(long, value_name = "MODE")]
    exposure: Option<ExposureFlag>,
    /// File with prompts and resources to offer
    #[arg(long, value_name = "FILE")]
    content: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plugins: PluginFlags,
    #[command(flatten)]
    grants_and_secrets: GrantAndSecretFlags,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    interceptors: InterceptorFlags,
    #[command(flatten)]
    approvals: ApprovalFlags,
}

impl ServedHostFlags {
    /// Returns the policy that decides which calls the user of a client must approve.
    ///
    /// # Errors
    /// As [`ApprovalFlags::policy`].
    pub(crate) fn approval_policy(&self) -> Result<ApprovalPolicy, Error> {
        self.approvals.policy()
    }

    /// Reads the prompts and resources.
    ///
    /// # Errors
    /// As [`ServedContent::read`].
    pub(crate) fn content(&self) -> Result<ServedContent, Error> {
        match &self.content {
            None => Ok(ServedContent::default()),
            Some(file) => ServedContent::read(file)
                .map_err(|error| error.with_suggestion("the page `MCP clients` of the documentation shows an example")),
        }
    }

    /// Builds the host. `grants` is the path to a grants file that replaces the grants file of the options. The host
    /// discovers dynamic tools in the background, and follows changes in the plugin directories.
    pub(crate) async fn build(&self, grants: Option<&Path>) -> Result<Toolwit, Error> {
        for directory in self.plugins.directories()? {
            // The watcher accepts a directory that does not exist. This check reports a misspelt path.
            if !directory.exists() {
                let message = format!("the plugin directory `{}` does not exist", directory.display());
                return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                    .with_suggestion("create it, or pass another one with `--plugins DIR`"));
            }
        }
        let exposure = self.exposure.map(Exposure::from).unwrap_or_default();
        let builder = self
            .plugins
            .builder_with_grants(&self.limits, &self.grants_and_secrets)?;
        let mut builder = with_word_vectors(self.interceptors.add_to(builder)?);
        if let Some(grants) = grants {
            require_not_written_by_plugin(grants)?;
            builder = builder.grants(grants);
        }
        let builder = builder.exposure(exposure).watch(WatchOptions::default());
        builder.background_discovery().build().await
    }
}

/// Prints a warning for each of the first [`BROKEN_SHOWN_MAX`] broken packages, because their tools are not served.
/// Prints only the number of the other broken packages.
pub(crate) fn warn_about_broken(printer: Printer, registry: &Registry) {
    let packages = registry.packages().iter();
    let broken: Vec<_> = packages
        .filter_map(|package| Some((package, package.broken_reason()?)))
        .collect();
    for (package, reason) in broken.iter().take(BROKEN_SHOWN_MAX) {
        printer.warn(format_args!("`{}` is not served: {}", package.name, reason.message));
    }
    let omitted_count = broken.len().saturating_sub(BROKEN_SHOWN_MAX);
    if omitted_count > 0 {
        printer.warn(format_args!(
            "not served either: {}; `toolwit list` shows the reasons",
            counted(omitted_count, "other broken package")
        ));
    }
}
