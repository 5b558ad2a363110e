//! `toolwit call`: calls tools without a model.

mod outcome;
mod script;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::outcome::CallOutcome;
use self::script::{AfterError, Script, run_script};
use crate::approval::{NoScreen, TerminalRespondent};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hint;
use crate::input::approvals::can_ask;
use crate::input::call_arguments::CallArguments;
use crate::input::interceptors::InterceptorFlags;
use crate::input::limits::LimitFlags;
use crate::input::mcp::McpFlags;
use crate::input::plugins::{GrantAndSecretFlags, PluginFlags};
use crate::output::printer::Printer;
use crate::output::progress::with_spinner;
use crate::output::tool_output::ToolOutput;
use toolwit::find::FindError;
use toolwit::registry::DynamicDiscovery;
use toolwit::tool::{Tool, ToolContext};
use toolwit::{CallSession, Toolwit};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit call count text='one two'
  toolwit call count '{\"text\": \"one two\"}'
  toolwit call evaluate @arguments.json --wall 250ms --memory-bytes 16MiB
  echo '{\"text\": \"one two\"}' | toolwit call count - --json

A script makes several calls in one conversation, so that entities can be used:
  toolwit call --script - <<'CALLS'
  {\"tool\": \"search_customer\", \"arguments\": {\"name\": \"John Smith\"}}
  {\"tool\": \"customer_c123_get_average_spend\"}
  CALLS";

/// Call a tool without a model
///
/// Prints the result to standard output: text unchanged, anything else as JSON. With -v, prints resource usage and
/// guest output to standard error. With --json, the document is {"ok": true, "result", "artifacts", "usage"} or
/// {"ok": false, "error"}.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Call {
    /// Name or id of the tool, as shown by `toolwit list`
    #[arg(required_unless_present = "script")]
    tool: Option<String>,
    /// Arguments: words NAME=VALUE, a JSON object, @FILE, or - for standard input
    ///
    /// The value of a string parameter is taken as it is, any other is JSON.
    #[arg(value_name = "NAME=VALUE|JSON")]
    arguments: Vec<String>,
    /// Script of calls in one conversation: a file with lines of {"tool": …, "arguments": {…}}, or - for standard input
    ///
    /// Methods of entities in a result can be called from the next line. After a failed call, the script continues.
    /// The exit code is that of the worst call. With --json, each call prints one line: {"tool": …, "ok": …, …}.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tool", "arguments"], verbatim_doc_comment)]
    script: Option<String>,
    /// Stop the script at the first failed call
    #[arg(long, requires = "script")]
    stop_on_error: bool,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    mcp: McpFlags,
    #[command(flatten)]
    grants_and_secrets: GrantAndSecretFlags,
    #[command(flatten)]
    interceptors: InterceptorFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

impl Call {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let servers = self.mcp.servers(&self.grants_and_secrets.secrets)?;
        match (self.script, self.tool) {
            (Some(script), _) => {
                let after_error = if self.stop_on_error {
                    AfterError::Stop
                } else {
                    AfterError::Continue
                };
                let script = Script::read(script, cancel).await?;
                let host = self.plugins.builder_with_interceptors(
                    &self.limits,
                    &self.grants_and_secrets,
                    &servers,
                    &self.interceptors,
                )?;
                let host = host.build().await?;
                run_script(&host, script, after_error, printer, cancel).await
            }
            (None, tool_name) => {
                let arguments = CallArguments::read(self.arguments, cancel).await?;
                let host = self.plugins.builder_with_interceptors(
                    &self.limits,
                    &self.grants_and_secrets,
                    &servers,
                    &self.interceptors,
                )?;
                let host = host.dynamic_discovery(DynamicDiscovery::Never).build().await?;
                call(&host, &tool_name.unwrap_or_default(), arguments, printer, cancel).await
            }
        }
    }
}

/// Calls a tool of a plugin that has no grants, and prints the outcome.
pub(crate) async fn call_without_grants(
    plugins: &PluginFlags,
    tool: &str,
    arguments: Vec<String>,
    limits: &LimitFlags,
    printer: Printer,
    cancel: &CancellationToken,
) -> Result<Exit, Failure> {
    let arguments = CallArguments::read(arguments, cancel).await?;
    let host = plugins.builder_without_grants(limits)?.build().await?;
    call(&host, tool, arguments, printer, cancel).await
}

async fn call(
    host: &Toolwit,
    tool_name: &str,
    arguments: CallArguments,
    printer: Printer,
    cancel: &CancellationToken,
) -> Result<Exit, Failure> {
    let mut session = host.call_session(call_context(printer, cancel));
    let tool = match session.find(tool_name) {
        Ok(tool) => tool,
        // The tool may be a dynamic tool that has not been discovered yet.
        Err(_) => {
            let _outcomes = with_spinner(printer, "discovering dynamic tools", host.discover_dynamic_tools()).await?;
            session = host.call_session(call_context(printer, cancel));
            find_everywhere(&mut session, host, tool_name, printer).await?
        }
    };
    let arguments = arguments.for_tool(tool.definition());
    compile_plugin(host, &*tool, printer, cancel).await?;
    tracing::info!(tool = %tool.definition().id, "calling");
    let call = session.call(&tool, arguments).await;
    let outcome = CallOutcome::of(&tool.definition().id, call.result);
    outcome.print(printer)?;
    Ok(outcome.exit())
}

/// Finds a tool of a plugin or of an MCP server. The servers are contacted only if the name does not select exactly one
/// tool of a plugin.
async fn find_everywhere(
    session: &mut CallSession,
    host: &Toolwit,
    tool_name: &str,
    printer: Printer,
) -> Result<Arc<dyn Tool>, Error> {
    let error = match session.find(tool_name) {
        Ok(tool) => return Ok(tool),
        Err(error) => error,
    };
    // The sources of the host are the MCP servers.
    if host.sources().is_empty() {
        return Err(hint::convert_find_error(error, &host.registry()));
    }
    // Contacts the server that the name belongs to, or all servers if the name is not the id of a server's tool.
    let connection = session.add_sources(tool_name);
    let unreachable_servers = with_spinner(printer, "contacting MCP servers", connection).await;
    session
        .find(tool_name)
        .map_err(|error| match (&error, unreachable_servers.into_iter().next()) {
            // A server that cannot be reached may have the tool.
            (FindError::Unknown { .. }, Some(server)) => server.error,
            _ => hint::convert_find_error(error, &host.registry()),
        })
}

/// Returns the context of a call, which prints the output of the tool while it runs. At a terminal, the person answers the questions
/// of plugins.
fn call_context(printer: Printer, cancel: &CancellationToken) -> ToolContext {
    let context = ToolContext::new()
        .with_cancel_token(cancel.clone())
        .with_output(Arc::new(ToolOutput(printer)));
    if can_ask() {
        return context.with_respondent(Arc::new(TerminalRespondent::new(Arc::new(NoScreen))));
    }
    context
}

/// Compiles the plugin of a tool, with a spinner. Does nothing for a tool that is not from a plugin. An interrupt ends
/// the wait; the compilation then continues in the background, at most until this process ends.
async fn compile_plugin(
    host: &Toolwit,
    tool: &dyn Tool,
    printer: Printer,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let owner = tool.definition().id.owner();
    let registry = host.registry();
    let Some(plugin) = registry.plugin_of(owner) else {
        return Ok(());
    };
    let text = format!("compiling {owner}");
    let compilation = with_spinner(printer, &text, plugin.compile());
    tokio::select! {
        biased;
        compilation = compilation => compilation.map(|_| ()),
        () = cancel.cancelled() => {
            let message = "interrupted during compilation; no guest code has run";
            Err(Error::new(ErrorKind::Cancelled, Phase::Load, message).with_plugin(owner))
        }
    }
}
