//! `toolwit revoke`: removes grants of a plugin.

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::grants::GrantFlags;
use crate::output::page::{Page, counted};
use crate::output::printer::{Format, Printer};
use toolwit::Error;
use toolwit::sandbox::{GrantsFile, GrantsFileError, GrantsFileErrorReason};

const EXAMPLES: &str = "\
Examples:
  toolwit revoke fetch                       revokes all grants
  toolwit revoke fetch config greeting       revokes one rule, as `toolwit grant fetch` shows it";

/// Revoke all grants of a plugin, or one rule
///
/// The change applies from the next call, also in a running host and in a running conversation.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Revoke {
    /// Name of the plugin in the grants file; the plugin itself need not exist
    plugin: String,
    /// Rule to revoke, as `toolwit grant PLUGIN` shows it, or its first words
    #[arg(value_name = "RULE")]
    rule: Vec<String>,
    #[command(flatten)]
    grants: GrantFlags,
}

impl Revoke {
    pub(crate) fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let file = self.grants.file()?;
        let rule = self.rule.join(" ");
        let (count, description) = if rule.is_empty() {
            let count = file.revoke(&self.plugin).map_err(|error| revoke_error(error, &file))?;
            (count, counted(count, "grant"))
        } else {
            let revoked_rule = file.revoke_rule(&self.plugin, &rule);
            (1, revoked_rule.map_err(|error| revoke_error(error, &file))?)
        };
        match printer.format() {
            Format::Json => {
                printer.document(&serde_json::json!({"plugin": self.plugin, "revoked": count, "what": description}))?
            }
            Format::Human => {
                let mut page = Page::new();
                page.text(format_args!("revoked from {}: {description}", self.plugin))
                    .end();
                printer.message(&page);
            }
        }
        Ok(Exit::Success)
    }
}

/// Converts an error. If the plugin has no grants, the suggestion lists the plugins that have grants.
fn revoke_error(error: GrantsFileError, file: &GrantsFile) -> Error {
    let is_not_granted = matches!(error.reason, GrantsFileErrorReason::NotGranted(_));
    let error = Error::from(error);
    let Some(grants) = file.read().ok().filter(|_| is_not_granted) else {
        return error;
    };
    let mut names: Vec<_> = grants
        .grants
        .iter()
        .map(|grant| format!("`{}`", grant.plugin))
        .collect();
    names.sort();
    names.dedup();
    error.with_suggestion(if names.is_empty() {
        "the file has no grants".to_owned()
    } else {
        format!("it has grants for {}", names.join(", "))
    })
}
