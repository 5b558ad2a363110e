//! Asking a component for its tools.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::validate::{Written, check};
use crate::call::function::FunctionCall;
use crate::call::guarded::{GuardedCall, GuestWork, RunningCall};
use crate::call::instance::Instance;
use crate::call::plugin::Plugin;
use crate::call::scope::Scope;
use crate::grants::authority::Authority;
use crate::inspect::dynamic_tools::DynamicTools;
use crate::link::wasi::Stdio;
use crate::values::dynamic_export::DiscoveredTool;
use toolwit_core::text::printable;
use toolwit_core::{Arguments, ToolContext, ToolResult};
use toolwit_core::{Error, ErrorKind, Phase};

/// How long it may take to have a component's tools, all in all: somebody waits for them. Those that ask a server need seconds.
const ASK_WALL_MAX: Duration = Duration::from_secs(10);

/// How much of the guest's own reason is told, in characters.
const REASON_CHARS_MAX: usize = 500;

impl Plugin {
    /// Returns whether the component has dynamic tools, and whether they have been discovered. A cached inspection is not
    /// parsed for that.
    #[must_use]
    pub fn dynamic_tools(&self) -> DynamicTools {
        self.known().dynamic_tools()
    }

    /// Asks the component for the tools that it tells when it runs, and returns a plugin that has them; without such, or when
    /// they are known, the plugin itself.
    ///
    /// It runs as a call does, under the bounds of a call and with what is granted to the plugin. All in all it takes at most ten
    /// seconds, compiling included, which goes on by itself. Machine code is shared between both plugins.
    ///
    /// # Errors
    /// Those of a call; [`ErrorKind::Tool`] with the reason that the component gave; [`ErrorKind::InvalidProvider`] for tools
    /// that cannot be used. The next call asks again.
    pub async fn discover_tools(self: &Arc<Self>) -> Result<Arc<Self>, Error> {
        if self.dynamic_tools().is_undiscovered() {
            self.rediscover_tools().await
        } else {
            Ok(self.clone())
        }
    }

    /// Asks the component as [`Plugin::discover_tools`] does, whatever it told before.
    ///
    /// # Errors
    /// Those of [`Plugin::discover_tools`].
    pub async fn rediscover_tools(self: &Arc<Self>) -> Result<Arc<Self>, Error> {
        if self.dynamic_tools().is_none() {
            return Ok(self.clone());
        }
        let told = self
            .ask(Instant::now() + ASK_WALL_MAX)
            .await
            .map_err(|error| error.with_plugin(self.name()))?;
        Ok(self.with_inspection(self.inspection().telling(told, self.name())))
    }

    /// Returns a plugin with the tools that the component told before, as [`Inspection::discovered_tools`](super::super::Inspection::discovered_tools)
    /// wrote them; `None` for any other text.
    #[must_use]
    pub fn with_discovered_tools(&self, told: &str) -> Option<Arc<Self>> {
        let told: Vec<DiscoveredTool> = serde_json::from_str(told).ok()?;
        Some(self.with_inspection(self.inspection().telling(told, self.name())))
    }

    async fn ask(self: &Arc<Self>, until: Instant) -> Result<Vec<DiscoveredTool>, Error> {
        let inspection = self.inspection();
        let Some(dynamic) = &inspection.shape.dynamic else {
            return Ok(Vec::new());
        };
        let function = &inspection.shape.functions[dynamic.tools];
        let mut query = ToolQuery {
            function: FunctionCall::new(function, dynamic.tools, Arguments::new()),
            has_started: false,
        };
        let call = GuardedCall {
            plugin: self,
            conversation: Scope::new().policy().conversation(),
            context: &ToolContext::new(),
            deadline: Some(until),
        };
        let listed = Box::pin(call.run(&mut query)).await;
        let listed = listed.map_err(|error| {
            if query.has_started {
                in_vain(error)
            } else {
                not_yet(error)
            }
        })?;
        tokio::task::spawn_blocking(move || checked(listed, until))
            .await
            .unwrap_or_else(|error| Err(unreadable().with_source(error)))
    }
}

/// Calls the function that lists the tools, and records whether guest code ran.
struct ToolQuery<'a> {
    function: FunctionCall<'a>,
    has_started: bool,
}

impl GuestWork for ToolQuery<'_> {
    fn check(&mut self, call: &GuardedCall<'_>, authority: &Authority) -> Result<(), Error> {
        self.function.check(call, authority)
    }

    async fn instance(&mut self, call: &RunningCall<'_>) -> Result<Instance, Error> {
        self.has_started = true;
        call.fresh_instance(Stdio::Log).await
    }

    async fn run(&mut self, instance: &mut Instance, call: &RunningCall<'_>) -> Result<ToolResult, Error> {
        self.function.run(instance, call).await
    }
}

/// Says that it was not asked at all.
fn not_yet(error: Error) -> Error {
    match error.kind {
        ErrorKind::Timeout => {
            let message = "it is still compiling, and was not asked for its tools";
            Error::new(ErrorKind::Timeout, Phase::Load, message).with_suggestion("ask again later: compiling goes on")
        }
        _ => error,
    }
}

/// Says in what a guest failed, whose own words would say only how.
fn in_vain(error: Error) -> Error {
    let message = format!("it could not tell its tools: {}", error.message);
    let told = Error::new(error.kind, error.phase, message);
    let told = match error.limit.clone() {
        Some(limit) => told.with_limit(limit),
        None => told,
    };
    match error.suggestion.clone() {
        Some(suggestion) => told.with_suggestion(suggestion).with_source(error),
        None => told.with_source(error),
    }
}

/// Takes what was told, or why nothing was. Blocks.
fn checked(answered: ToolResult, until: Instant) -> Result<Vec<DiscoveredTool>, Error> {
    if answered.is_error() {
        let reason: String = printable(&answered.for_llm).chars().take(REASON_CHARS_MAX).collect();
        let message = format!("it could not tell its tools: {reason}");
        return Err(Error::new(ErrorKind::Tool, Phase::Load, message));
    }
    let written: Vec<Written> =
        serde_json::from_value(answered.value.unwrap_or_default()).map_err(|error| unreadable().with_source(error))?;
    check(written, until).map_err(|why| {
        Error::new(
            ErrorKind::InvalidProvider,
            Phase::Load,
            format!("its tools cannot be used: {why}"),
        )
        .with_suggestion("tell its author")
    })
}

fn unreadable() -> Error {
    let message = "what it told of its tools could not be read";
    Error::new(ErrorKind::Internal, Phase::Load, message)
}
