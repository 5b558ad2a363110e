//! `toolwit call`: calls without a model.

mod answer;

use tokio_util::sync::CancellationToken;

use self::answer::Answer;
use super::exit::Exit;
use super::failure::Failure;
use super::input::read_arguments;
use super::limits::LimitFlags;
use super::lookup::find_tool;
use super::plugins::{AuthorityFlags, PluginFlags};
use super::printer::Printer;
use super::progress::shown;
use crate::error::{Error, ErrorKind, Phase};
use crate::host::Toolwit;
use crate::plugin::Scope;
use crate::tool::{Tool, ToolContext};

const EXAMPLES: &str = "\
Examples:
  toolwit call word_count '{\"text\": \"one two\"}'
  toolwit call evaluate @arguments.json --timeout 250ms --memory 16MiB
  echo '{\"text\": \"one two\"}' | toolwit call word_count - --json";

/// Call a tool, without a model
///
/// The result goes to standard output: a text as it is, anything else as JSON. With -v, what the call cost and what the guest
/// wrote go to standard error. With --json, the document is {\"ok\": true, \"result\", \"artifacts\", \"usage\"} or
/// {\"ok\": false, \"error\"}.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Call {
    /// The tool's name or id, as `toolwit list` shows them
    tool: String,
    /// The arguments: a JSON object, @FILE, or - for standard input
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    authority: AuthorityFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

impl Call {
    pub(super) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let arguments = read_arguments(self.arguments).await?;
        let host = self.plugins.load_granted(&self.limits, &self.authority).await?;
        let tool = find_tool(&host, &host.tools(&Scope::new()), &self.tool)?;
        prepare(&host, &*tool, printer, cancel).await?;
        tracing::info!(tool = %tool.definition().id, "calling");
        let context = ToolContext::new().with_cancel(cancel.clone());
        let answered = tool.call(arguments, &context).await;
        let answer = Answer::of(&tool.definition().id, answered);
        answer.print(printer)?;
        Ok(answer.exit())
    }
}

/// Compiles the plugin of a tool, and tells about it when it takes long. Compiling cannot be stopped, but left.
async fn prepare(host: &Toolwit, tool: &dyn Tool, printer: Printer, cancel: &CancellationToken) -> Result<(), Error> {
    let owner = tool.definition().id.owner();
    let Some(plugin) = host.registry().plugins().find(|plugin| plugin.name() == owner) else {
        return Ok(());
    };
    let text = format!("compiling {owner}");
    let prepared = shown(printer, &text, plugin.prepare());
    tokio::select! {
        biased;
        prepared = prepared => prepared.map(|_| ()),
        () = cancel.cancelled() => {
            let message = "interrupted while it was compiled; nothing has run";
            Err(Error::new(ErrorKind::Cancelled, Phase::Load, message).with_plugin(owner))
        }
    }
}
