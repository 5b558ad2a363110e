//! `toolwit call`: calls without a model.

mod answer;
mod script;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::answer::Answer;
use self::script::{AfterError, Script, play};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::call_arguments::read_arguments;
use crate::input::limits::LimitFlags;
use crate::input::plugins::{AuthorityFlags, PluginFlags};
use crate::input::tool_lookup::find_tool;
use crate::output::printer::Printer;
use crate::output::progress::with_spinner;
use crate::output::tool_output::ToolOutput;
use toolwit::Toolwit;
use toolwit::sandbox::Scope;
use toolwit::tool::{Arguments, Tool, ToolContext, ToolSet};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit call count '{\"text\": \"one two\"}'
  toolwit call evaluate @arguments.json --timeout 250ms --memory 16MiB
  echo '{\"text\": \"one two\"}' | toolwit call count - --json

A script plays several calls in one conversation, so that entities can be used:
  toolwit call --script - <<'CALLS'
  {\"tool\": \"search_customer\", \"arguments\": {\"name\": \"John Smith\"}}
  {\"tool\": \"customer_c123_get_average_spend\"}
  CALLS";

/// Call a tool, without a model
///
/// The result goes to standard output: a text as it is, anything else as JSON. With -v, what the call cost and what the guest
/// wrote go to standard error. With --json, the document is {"ok": true, "result", "artifacts", "usage"} or
/// {"ok": false, "error"}.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Call {
    /// The tool's name or id, as `toolwit list` shows them
    #[arg(required_unless_present = "script")]
    tool: Option<String>,
    /// The arguments: a JSON object, @FILE, or - for standard input
    #[arg(value_name = "JSON")]
    arguments: Option<String>,
    /// Play calls in one conversation instead: lines of {"tool": …, "arguments": {…}} in a file, or - for standard input
    ///
    /// The methods of entities in a result can be called from the next line on. After a call that failed, the script goes on;
    /// it ends with the worst exit code. With --json, each call gives one line: {"tool": …, "ok": …, …}.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tool", "arguments"], verbatim_doc_comment)]
    script: Option<String>,
    /// End the script at the first call that fails
    #[arg(long, requires = "script")]
    stop_on_error: bool,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    authority: AuthorityFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

impl Call {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        match (self.script, self.tool) {
            (Some(script), _) => {
                let after_error = match self.stop_on_error {
                    true => AfterError::Stop,
                    false => AfterError::GoOn,
                };
                let script = Script::read(script, cancel).await?;
                let host = self
                    .plugins
                    .granted(&self.limits, &self.authority)
                    .await?
                    .build()
                    .await?;
                play(&host, script, after_error, printer, cancel).await
            }
            (None, wanted) => {
                let arguments = read_arguments(self.arguments, cancel).await?;
                let host = self.plugins.load_granted(&self.limits, &self.authority).await?;
                call(&host, &wanted.unwrap_or_default(), arguments, printer, cancel).await
            }
        }
    }
}

async fn call(
    host: &Toolwit,
    wanted: &str,
    arguments: Arguments,
    printer: Printer,
    cancel: &CancellationToken,
) -> Result<Exit, Failure> {
    let mut tools = host.tools(&Scope::new());
    let tool = match find_tool(host, &tools, wanted) {
        Ok(tool) => tool,
        // It may be one that a plugin tells only when it runs.
        Err(_) => {
            let _asking =
                with_spinner(printer, "asking plugins for their tools", host.discover_dynamic_tools()).await?;
            tools = host.tools(&Scope::new());
            find_tool(host, &tools, wanted)?
        }
    };
    prepare(host, &*tool, printer, cancel).await?;
    tracing::info!(tool = %tool.definition().id, "calling");
    let context = ToolContext::new()
        .with_cancel(cancel.clone())
        .with_output(Arc::new(ToolOutput(printer)))
        .with_tools(Arc::new(ToolSet::from_iter(tools)));
    let answer = Answer::of(&tool.definition().id, tool.call(arguments, &context).await);
    answer.print(printer)?;
    Ok(answer.exit())
}

/// Compiles the plugin of a tool, and tells about it when it takes long. Compiling cannot be stopped, but left.
async fn prepare(host: &Toolwit, tool: &dyn Tool, printer: Printer, cancel: &CancellationToken) -> Result<(), Error> {
    let owner = tool.definition().id.owner();
    let registry = host.registry();
    let Some(plugin) = registry.plugin_of(owner) else {
        return Ok(());
    };
    let text = format!("compiling {owner}");
    let prepared = with_spinner(printer, &text, plugin.prepare());
    tokio::select! {
        biased;
        prepared = prepared => prepared.map(|_| ()),
        () = cancel.cancelled() => {
            let message = "interrupted while it was compiled; nothing has run";
            Err(Error::new(ErrorKind::Cancelled, Phase::Load, message).with_plugin(owner))
        }
    }
}
