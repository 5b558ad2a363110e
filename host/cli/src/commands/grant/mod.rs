//! `toolwit grant`: what a plugin may do.

mod file;
mod flags;
mod needs;
mod show;

pub(crate) use needs::is_met;

use std::sync::Arc;

use self::file::GrantsFile;
use self::flags::AllowanceFlags;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::grants::GrantFlags;
use crate::input::limits::LimitFlags;
use crate::output::page::{Page, TITLE, WARN, counted};

use crate::input::plugins::PluginFlags;
use crate::output::printer::{Format, Printer};
use toolwit::Toolwit;
use toolwit::grants::Capability;
use toolwit::sandbox::Plugin;
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit grant fetch                                         what it asks for, and what it has
  toolwit grant fetch --http 'GET,POST https://api.example.com/v1'
  toolwit grant notes --read /srv/notes::/notes --write /srv/out::/out --quota 10MiB
  toolwit grant weather --secret weather-key --to api.example.com --as header:x-api-key --http api.example.com";

/// Grant something to a plugin, or show what it asks for
///
/// The grant is for the component as it is now, by its digest: one that is replaced has nothing until it is granted anew. It
/// holds from the next call, also in a host that runs. Each change leaves a line in the log beside the file.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Grant {
    /// The plugin's name, as `toolwit list` shows it
    plugin: String,
    #[command(flatten)]
    allowance: AllowanceFlags,
    /// Grant it for one call
    #[arg(long, conflicts_with = "session")]
    once: bool,
    /// Grant it to the first conversation that uses it
    #[arg(long)]
    session: bool,
    /// Grant it to whatever component has this name: whoever can replace the file has the grant
    #[arg(long)]
    any_version: bool,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    grants: GrantFlags,
}

impl Grant {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let host = self.plugins.load(&LimitFlags::default()).await?;
        let plugin = find(&host, &self.plugin)?;
        let digest = &plugin.inspection().digest;
        let what = self.allowance.told();
        if what.is_empty() {
            let file = GrantsFile::open(self.grants.path()?)?;
            let package = host.registry().package(plugin.name()).cloned();
            let manifest = package.and_then(|package| package.manifest);
            show::print(printer, &plugin, manifest.as_deref(), &file.grants)?;
            return Ok(Exit::Success);
        }
        let mut file = GrantsFile::open_to_change(self.grants.path()?)?;
        let mut table = toml_edit::Table::new();
        table["plugin"] = toml_edit::value(plugin.name());
        if self.any_version {
            table["any-version"] = toml_edit::value(true);
        } else {
            table["digest"] = toml_edit::value(format!("sha256:{digest}"));
        }
        if self.once || self.session {
            table["scope"] = toml_edit::value(if self.once { "once" } else { "session" });
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            table["issued"] = toml_edit::value(now.map_or(0, |time| i64::try_from(time.as_secs()).unwrap_or(0)));
        }
        self.allowance.write(&mut table)?;
        file.add(table)?;
        file.save("grant", plugin.name(), &what)?;
        let has_effect = |capabilities: &[Capability]| capabilities.iter().any(|one| plugin.declared().has(*one));
        let kinds = self.allowance.kinds().into_iter();
        let idle: Vec<_> = kinds
            .filter(|(_, imports)| !has_effect(imports))
            .map(|(kind, _)| kind)
            .collect();
        match printer.format() {
            Format::Json => {
                let document = serde_json::json!({"plugin": plugin.name(), "granted": what, "without_effect": idle});
                printer.document(&document)?;
            }
            Format::Human => {
                let mut page = Page::new();
                for kind in &idle {
                    page.styled(WARN, "warning:")
                        .text(format_args!(
                            " {} does not import {kind}: that has no effect",
                            plugin.name()
                        ))
                        .end();
                }
                for line in &what {
                    page.text("granted to ")
                        .styled(TITLE, plugin.name())
                        .text(": ")
                        .text(line)
                        .end();
                }
                printer.message(&page);
            }
        }
        Ok(Exit::Success)
    }
}

/// Finds a plugin by its name.
pub(crate) fn find(host: &Toolwit, name: &str) -> Result<Arc<Plugin>, Error> {
    let registry = host.registry();
    let found = registry.plugins().find(|plugin| plugin.name() == name);
    found.cloned().ok_or_else(|| {
        let names: Vec<_> = registry
            .plugins()
            .map(|plugin| format!("`{}`", plugin.name()))
            .collect();
        Error::new(
            ErrorKind::Configuration,
            Phase::Registry,
            format!("there is no usable plugin `{name}`"),
        )
        .with_suggestion(format!("there are {}", names.join(", ")))
    })
}

const REVOKE_EXAMPLES: &str = "\
Examples:
  toolwit revoke fetch";

/// Take back everything that is granted to a plugin
///
/// It holds from the next call, also in a host that runs and in a conversation that goes on.
#[derive(Debug, clap::Args)]
#[command(after_help = REVOKE_EXAMPLES)]
pub(crate) struct Revoke {
    /// The plugin's name, as the grants have it; the plugin itself may be gone
    plugin: String,
    #[command(flatten)]
    grants: GrantFlags,
}

impl Revoke {
    pub(crate) fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let mut file = GrantsFile::open_to_change(self.grants.path()?)?;
        let removed = file.remove(&self.plugin)?;
        if removed > 0 {
            file.save("revoke", &self.plugin, &[])?;
        }
        match printer.format() {
            Format::Json => printer.document(&serde_json::json!({"plugin": self.plugin, "revoked": removed}))?,
            Format::Human => {
                let mut page = Page::new();
                let grants = counted(removed, "grant");
                page.text(format_args!("taken back from {}: {grants}", self.plugin))
                    .end();
                printer.message(&page);
            }
        }
        Ok(Exit::Success)
    }
}
