//! `toolwit explain`: whether a plugin is allowed an access, and which rule decides.

use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::access::{parse_access, parse_http_target};
use crate::input::limits::LimitFlags;
use crate::input::plugins::{GrantAndSecretFlags, PluginFlags, find_plugin};
use crate::output::page::{BAD, GOOD, Page, visible};
use crate::output::printer::{Format, Printer};
use toolwit::Error;
use toolwit::grants::Explanation;
use toolwit::sandbox::Plugin;

const EXAMPLES: &str = "\
Examples:
  toolwit explain fetch 'GET https://api.example.com:8443/a'
  toolwit explain notes read /notes/a.txt
  toolwit explain notes env LANG";

/// Explain whether a plugin is allowed an access, and which rule decides
///
/// The answer is for the next call in a new conversation. The same code decides during a call. This command does not use
/// up a grant, and does not resolve host names: a call to a granted host name can still be denied, because of the
/// address of the host.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// Name of the plugin, as in `toolwit list`
    plugin: String,
    /// Request (`[METHOD] URL`), `read PATH`, `write PATH`, `secret NAME`, `env NAME`, `config KEY`, `keyvalue`,
    /// `clock`, `random`, `tool ID`, `context KEY`, `blackboard [read|write]` or `ask`
    #[arg(required = true, num_args = 1..=2, value_name = "ACCESS")]
    access: Vec<String>,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    grants_and_secrets: GrantAndSecretFlags,
}

impl Explain {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let host = self
            .plugins
            .load_with_grants(&LimitFlags::default(), &self.grants_and_secrets)
            .await?;
        let plugin = find_plugin(&host, &self.plugin)?;
        let access = self.access.join(" ");
        let explanation = explain(&plugin, &access).await?;
        let is_allowed = explanation.decision.is_allowed();
        match printer.format() {
            Format::Json => {
                let reason = explanation.to_string();
                printer.document(
                    &json!({"plugin": plugin.name(), "what": access, "allowed": is_allowed, "why": reason}),
                )?;
            }
            Format::Human => {
                let mut page = Page::new();
                let (style, word) = if is_allowed { (GOOD, "allowed") } else { (BAD, "denied") };
                page.styled(style, word).text(": ").text(visible(explanation)).end();
                printer.print_page(&page)?;
            }
        }
        Ok(if is_allowed { Exit::Success } else { Exit::Stopped })
    }
}

async fn explain(plugin: &Plugin, access: &str) -> Result<Explanation, Error> {
    let target = parse_http_target(access)?;
    plugin.explain(&parse_access(access, target.as_ref())).await
}
