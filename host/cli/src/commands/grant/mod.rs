//! `toolwit grant`: grants access to a plugin, or shows its grants.

mod flags;
mod needs;
mod requests;
mod revoke;
mod show;

pub(crate) use needs::is_met;
pub(crate) use revoke::Revoke;

use self::flags::RuleFlags;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::plugins::{GrantAndSecretFlags, PluginFlags, find_plugin};
use crate::output::page::{Page, TITLE, WARN};
use crate::output::printer::{Format, Printer};
use toolwit::grants::{Capability, GrantRules, GrantScope, GrantedVersion};
use toolwit::sandbox::{NewGrant, Plugin};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit grant fetch                                         shows its imports and grants
  toolwit grant fetch --http 'GET,POST https://api.example.com/v1'
  toolwit grant notes --read /srv/notes::/notes --write /srv/out::/out --quota 10MiB
  toolwit grant weather --secret weather-key --to api.example.com --as header:x-api-key --http api.example.com";

/// Grant access to a plugin, or show its grants
///
/// Without --any-version, a grant is for one version of a component, which its digest identifies: a replaced component
/// has no grants until you grant again. A grant applies from the next call, also in a running host. Each change adds a
/// line to the log next to the grants file.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Grant {
    /// Name of the plugin, as in `toolwit list`
    plugin: String,
    #[command(flatten)]
    rules: RuleFlags,
    /// Grant for one call
    #[arg(long, conflicts_with = "session")]
    once: bool,
    /// Grant for one conversation: the first that uses the grant
    #[arg(long)]
    session: bool,
    /// Grant to any component with this name; anyone who can replace the component file gets the grant
    #[arg(long)]
    any_version: bool,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    grants_and_secrets: GrantAndSecretFlags,
}

impl Grant {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let host = self.plugins.load_for_granting(&self.grants_and_secrets).await?;
        let plugin = find_plugin(&host, &self.plugin)?;
        let file = self.grants_and_secrets.grants.file()?;
        let rules = self
            .rules
            .parse()
            .map_err(|error| Error::new(ErrorKind::Configuration, Phase::Registry, error.to_string()))?;
        if rules == GrantRules::default() {
            let package = host.registry().package(plugin.name()).cloned();
            let requested = match &package {
                Some(package) => package.read_requested_permissions().await,
                None => Ok(None),
            };
            // The grants are shown even if the requested permissions cannot be read.
            let requested = requested.unwrap_or_else(|error| {
                printer.warn(&error.message);
                None
            });
            let manifest = package.and_then(|package| package.manifest);
            show::print(printer, &plugin, manifest.as_deref(), requested.as_ref(), &file)?;
            return Ok(Exit::Success);
        }
        let grant = NewGrant {
            plugin: plugin.name().to_owned(),
            version: if self.any_version {
                GrantedVersion::Any
            } else {
                GrantedVersion::Digest(plugin.inspection().digest.clone())
            },
            scope: match (self.once, self.session) {
                (true, _) => GrantScope::Once,
                (_, true) => GrantScope::Session,
                _ => GrantScope::Always,
            },
            rules,
        };
        plugin.check_grant(&grant.rules).await?;
        let is_new = file.grant(&grant).map_err(Error::from)?;
        print_granted(printer, &plugin, &grant.rules, is_new)?;
        Ok(Exit::Success)
    }
}

/// Prints the granted rules. Warns about each kind of rule that has no effect, because the component does not import
/// its capability.
fn print_granted(printer: Printer, plugin: &Plugin, rules: &GrantRules, is_new: bool) -> Result<(), Failure> {
    let is_imported = |capabilities: &[Capability]| {
        capabilities
            .iter()
            .any(|capability| plugin.declared_capabilities().has(*capability))
    };
    let without_effect: Vec<_> = flags::rule_kinds(rules)
        .into_iter()
        .filter(|(_, capabilities)| !is_imported(capabilities))
        .map(|(kind, _)| kind)
        .collect();
    let rule_lines = rules.describe();
    if printer.format() == Format::Json {
        return printer.document(&serde_json::json!({
            "plugin": plugin.name(), "granted": rule_lines, "is_new": is_new, "without_effect": without_effect,
        }));
    }
    let mut page = Page::new();
    for kind in &without_effect {
        page.styled(WARN, "warning:")
            .text(format_args!(
                " the {kind} rule has no effect, because {} does not import the capability",
                plugin.name()
            ))
            .end();
    }
    for line in &rule_lines {
        page.text(if is_new { "granted to " } else { "already granted to " })
            .styled(TITLE, plugin.name())
            .text(": ")
            .text(line)
            .end();
    }
    printer.message(&page);
    Ok(())
}
