//! `toolwit grant`: grants access to a plugin, or shows its grants.

mod flags;
mod link_targets;
mod needs;
mod requests;
mod revoke;
mod show;

pub(crate) use needs::is_met;
pub(crate) use revoke::Revoke;

use std::collections::BTreeMap;

use self::flags::RuleFlags;
use self::link_targets::link_targets;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::plugins::{GrantAndSecretFlags, PluginFlags, find_plugin};
use crate::output::page::{Page, TITLE, WARN, visible};
use crate::output::printer::{Format, Printer};
use toolwit::grants::{Capability, GrantRules, GrantScope, GrantedVersion, stale_grants};
use toolwit::sandbox::{GrantsFile, NewGrant, Plugin};
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
    /// Give the values in the key–value store that another version of the plugin stored to this version
    #[arg(long, requires = "keyvalue")]
    keep_values: bool,
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
        if !self.keep_values {
            require_own_values(&plugin, &grant, &file)?;
        }
        plugin.check_grant(&grant.rules).await?;
        let registry = host.registry();
        let package = registry.package(plugin.name());
        let directory = package.and_then(|package| std::fs::canonicalize(package.path.parent()?).ok());
        let is_new = file.grant_in(&grant, directory.as_deref()).map_err(Error::from)?;
        print_granted(printer, &plugin, &grant.rules, is_new)?;
        Ok(Exit::Success)
    }
}

/// Refuses a key–value store with values of another version of the plugin: the store belongs to the name of a plugin, and the
/// component that now has this name may be by another author.
fn require_own_values(plugin: &Plugin, grant: &NewGrant, file: &GrantsFile) -> Result<(), Error> {
    let GrantedVersion::Digest(digest) = &grant.version else {
        return Ok(());
    };
    let grants = file.read()?;
    let has_store = |grant: &toolwit::grants::Grant| grant.rules.keyvalue.is_some();
    let mut current = grants.grants.iter().filter(|grant| grant.is_for(plugin.name(), digest));
    let mut stale = stale_grants(&grants, plugin.name(), digest).into_iter();
    if grant.rules.keyvalue.is_none() || current.any(has_store) || !stale.any(has_store) {
        return Ok(());
    }
    let message = format!(
        "the key–value store of `{}` may have values of another version of the plugin",
        plugin.name()
    );
    Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion("pass `--keep-values` to give them to this version, if it is by the same author"))
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
    let targets = link_targets(rules);
    if printer.format() == Format::Json {
        return printer.document(&serde_json::json!({
            "plugin": plugin.name(), "granted": rule_lines, "is_new": is_new, "without_effect": without_effect,
            "leads_to": targets.iter().cloned().collect::<BTreeMap<_, _>>(),
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
            .styled(TITLE, visible(plugin.name()))
            .text(": ")
            .text(visible(line))
            .end();
    }
    for (path, target) in &targets {
        page.text(visible(path)).text(" leads to ").text(visible(target)).end();
    }
    printer.message(&page);
    Ok(())
}
