//! Discovery: queries a component for its dynamic tools.

use std::sync::Arc;

use tokio::time::Instant;

use super::validate::validate;
use crate::call::contract_call::{ContractCall, ContractRequest};
use crate::call::function::FunctionCall;
use crate::call::guarded_call::{GuardedCall, GuestWork, RunningCall};
use crate::call::instance::Instance;
use crate::call::plugin::Plugin;
use crate::call::scope::Scope;
use crate::grants::authority::Authority;
use crate::link::host::wasi_context::Stdio;
use crate::values::dynamic_export::{DiscoveredTool, ListedTool, ToolContract};
use toolwit_core::limits::DISCOVERY_WALL_MAX;
use toolwit_core::text::printable;
use toolwit_core::{Arguments, ToolContext, ToolResult};
use toolwit_core::{Error, ErrorKind, Phase};

/// The maximum length of the reason that a guest returns instead of a list, in characters.
const REASON_CHARS_MAX: usize = 500;

impl Plugin {
    /// Queries the component for its dynamic tools, and returns a plugin with these tools. Returns the plugin itself if
    /// it has no dynamic tools, or if its tools have been discovered already.
    ///
    /// The query runs as a call, under the limits of a call and with the grants of the plugin. It takes at most
    /// [`DISCOVERY_WALL_MAX`], including the time to compile the component. If compiling takes longer, it continues in
    /// the background until the process ends. The returned plugin shares the compiled code of this one.
    ///
    /// # Errors
    /// Those of a call; [`ErrorKind::Tool`] with the reason that the component returned instead of a list;
    /// [`ErrorKind::InvalidProvider`] for invalid tools; [`ErrorKind::Internal`] for a list that the host cannot read.
    /// An error is not cached: the next call of this method queries again.
    pub async fn discover_tools(self: &Arc<Self>) -> Result<Arc<Self>, Error> {
        if self.dynamic_tools_state().is_undiscovered() {
            self.with_queried_tools().await
        } else {
            Ok(self.clone())
        }
    }

    /// Queries the component as [`Plugin::discover_tools`] does, even if its tools have been discovered already.
    /// Returns the plugin itself if it has no dynamic tools.
    ///
    /// Waits for the component to be compiled first, for at most
    /// [`load_wall_max`](toolwit_core::limits::EngineLimits::load_wall_max). Otherwise, a process that ends soon could
    /// not query a component whose compilation takes longer than [`DISCOVERY_WALL_MAX`].
    ///
    /// # Errors
    /// Those of [`Plugin::compile`] and of [`Plugin::discover_tools`].
    pub async fn rediscover_tools(self: &Arc<Self>) -> Result<Arc<Self>, Error> {
        if self.dynamic_tools_state().is_none() {
            return Ok(self.clone());
        }
        self.compile().await?;
        self.with_queried_tools().await
    }

    /// Queries the component, and returns a plugin with the listed tools.
    async fn with_queried_tools(self: &Arc<Self>) -> Result<Arc<Self>, Error> {
        let tools = self
            .query_tools(Instant::now() + DISCOVERY_WALL_MAX)
            .await
            .map_err(|error| error.with_plugin(self.name()))?;
        Ok(self.with_inspection(self.inspection().with_tools(tools, self.name())))
    }

    /// Returns a plugin with the tools that were discovered earlier, from the JSON that
    /// [`Inspection::discovered_tools`](crate::Inspection::discovered_tools) returned. Returns `None` for any other
    /// text.
    #[must_use]
    pub fn with_discovered_tools(&self, json: &str) -> Option<Arc<Self>> {
        let tools: Vec<DiscoveredTool> = serde_json::from_str(json).ok()?;
        Some(self.with_inspection(self.inspection().with_tools(tools, self.name())))
    }

    async fn query_tools(self: &Arc<Self>, deadline: Instant) -> Result<Vec<DiscoveredTool>, Error> {
        let inspection = self.inspection();
        let Some(dynamic) = &inspection.shape.dynamic else {
            return Ok(Vec::new());
        };
        let call = GuardedCall {
            plugin: self,
            conversation: Scope::new().policy().conversation(),
            context: &ToolContext::new(),
            deadline: Some(deadline),
            is_long_running: false,
        };
        let list_result = match dynamic.contract {
            ToolContract::Toolwit { tools, .. } => {
                let function = &inspection.shape.functions[tools];
                run_query(call, FunctionCall::new(function, tools, Arguments::new())).await?
            }
            ToolContract::Foreign(contract) => {
                run_query(call, ContractCall::new(contract, ContractRequest::List)).await?
            }
        };
        tokio::task::spawn_blocking(move || read_tools(list_result, deadline))
            .await
            .unwrap_or_else(|error| Err(unreadable_list().with_source(error)))
    }
}

/// Runs the call that lists the tools.
async fn run_query<W: GuestWork>(call: GuardedCall<'_>, work: W) -> Result<ToolResult, Error> {
    let mut query = ToolQuery {
        work,
        has_started: false,
    };
    let outcome = Box::pin(call.run(&mut query)).await;
    outcome.map_err(|error| {
        if query.has_started {
            error_during_query(error)
        } else {
            error_before_query(error)
        }
    })
}

/// The work of a call that lists the tools.
struct ToolQuery<W> {
    work: W,
    /// Whether the component has been compiled and creating its instance has begun. From then on, guest code may run.
    has_started: bool,
}

impl<W: GuestWork> GuestWork for ToolQuery<W> {
    fn check(&mut self, call: &GuardedCall<'_>) -> Result<(), Error> {
        self.work.check(call)
    }

    fn check_authority(&self, authority: &Authority) -> Result<(), Error> {
        self.work.check_authority(authority)
    }

    async fn instance(&mut self, call: &RunningCall<'_>) -> Result<Instance, Error> {
        self.has_started = true;
        call.fresh_instance(Stdio::Log).await
    }

    async fn run(&mut self, instance: &mut Instance, call: &RunningCall<'_>) -> Result<ToolResult, Error> {
        self.work.run(instance, call).await
    }
}

/// Explains a timeout that occurred before guest code could run. Returns any other error unchanged.
fn error_before_query(error: Error) -> Error {
    match error.kind {
        ErrorKind::Timeout => {
            let message = "it is still compiling, and its tools have not been discovered";
            Error::new(ErrorKind::Timeout, Phase::Load, message)
                .with_suggestion("try again later: compiling continues in the background")
        }
        _ => error,
    }
}

/// Adds to the message of an error that the tools could not be discovered. The error becomes the source of the new one.
fn error_during_query(error: Error) -> Error {
    let message = format!("its tools could not be discovered: {}", error.message);
    let discovery_error = Error::new(error.kind, error.phase, message);
    let discovery_error = match error.limit.clone() {
        Some(limit) => discovery_error.with_limit(limit),
        None => discovery_error,
    };
    match error.suggestion.clone() {
        Some(suggestion) => discovery_error.with_suggestion(suggestion).with_source(error),
        None => discovery_error.with_source(error),
    }
}

/// Reads and validates the tools in the result of the query. Blocks.
fn read_tools(result: ToolResult, deadline: Instant) -> Result<Vec<DiscoveredTool>, Error> {
    if result.is_error() {
        let reason: String = printable(&result.for_llm).chars().take(REASON_CHARS_MAX).collect();
        let message = format!("its tools could not be discovered: {reason}");
        return Err(Error::new(ErrorKind::Tool, Phase::Load, message));
    }
    let listed_tools: Vec<ListedTool> = serde_json::from_value(result.value.unwrap_or_default())
        .map_err(|error| unreadable_list().with_source(error))?;
    validate(listed_tools, deadline).map_err(|why| {
        Error::new(
            ErrorKind::InvalidProvider,
            Phase::Load,
            format!("its tools cannot be used: {why}"),
        )
        .with_suggestion("report it to the author of the plugin")
    })
}

fn unreadable_list() -> Error {
    let message = "the list of its tools is not readable";
    Error::new(ErrorKind::Internal, Phase::Load, message)
}
