//! `toolwit remove`: deletes a package from a plugin directory.

use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::grants::GrantFlags;
use crate::input::limits::LimitFlags;
use crate::input::plugins::PluginFlags;
use crate::output::page::Page;
use crate::output::printer::{Format, Printer};
use crate::shell::SuggestedCommand;
use toolwit::registry::RemovedPackage;

/// Remove a package from a plugin directory
///
/// Deletes the component with its manifest (.toml) and WIT (.wit). Running calls finish. Grants and stored values
/// are kept in case the package is added again.
#[derive(Debug, clap::Args)]
pub(crate) struct Remove {
    /// Name of the plugin, as shown by `toolwit list`
    plugin: String,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    grants: GrantFlags,
}

impl Remove {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let host = self.plugins.load(&LimitFlags::default()).await?;
        let RemovedPackage { name, files } = host.live_registry().remove_package(&self.plugin).await?;
        let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        match printer.format() {
            Format::Json => printer.document(&json!({"ok": true, "removed": name, "files": files}))?,
            Format::Human => {
                let mut page = Page::new();
                for file in &files {
                    page.text("removed ").text(file).end();
                }
                printer.message(&page);
            }
        }
        let grants = self.grants.read()?;
        if printer.format() == Format::Human && grants.grants.iter().any(|grant| grant.plugin == name) {
            let revoke = SuggestedCommand::new("revoke").operand(&name);
            printer.hint(format_args!("its grants are kept; `{revoke}` revokes them"));
        }
        Ok(Exit::Success)
    }
}
