//! Asking a component for its tools.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::validate::{Written, check};
use crate::call::answer::answer;
use crate::call::instance::{CallClock, Instance};
use crate::call::scope::Scope;
use crate::inspect::dynamic_tools::DynamicTools;
use crate::link::wasi::Stdio;
use crate::plugin::Plugin;
use crate::values::dynamic_export::DiscoveredTool;
use toolwit_core::limits::CallLimits;
use toolwit_core::text::printable;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{ToolContext, ToolResult};

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
        Ok(self.telling(self.inspection().telling(told, self.name())))
    }

    /// Returns a plugin with the tools that the component told before, as [`Inspection::discovered_tools`](super::super::Inspection::discovered_tools)
    /// wrote them; `None` for any other text.
    #[must_use]
    pub fn with_discovered_tools(&self, told: &str) -> Option<Arc<Self>> {
        let told: Vec<DiscoveredTool> = serde_json::from_str(told).ok()?;
        Some(self.telling(self.inspection().telling(told, self.name())))
    }

    async fn ask(&self, until: Instant) -> Result<Vec<DiscoveredTool>, Error> {
        let inspection = self.inspection();
        let Some(dynamic) = &inspection.shape.dynamic else {
            return Ok(Vec::new());
        };
        let context = ToolContext::new();
        let authority = self.authority(Scope::new().confines().conversation(), &context).await?;
        let limits = self.limits_for(&context)?;
        let linked = self.linked_within(&context, left(until)).await.map_err(not_yet)?;
        let _place = self.place(&context, &within(&limits, until)).await?;
        let limits = within(&limits, until);
        let _running = self.runtime().engines.ticker.run();
        let clock = CallClock::start(&limits, &context);
        let network = &self.runtime().network;
        let run = async {
            let mut instance = Instance::new(&linked, &clock, Stdio::Log, &authority, network).await?;
            let value = instance.call(&linked, dynamic.tools, &[], &clock).await;
            if let Some(log) = instance.take_log() {
                tracing::debug!(
                    plugin = self.name(),
                    log = &*authority.redactor.text(&log),
                    "the guest wrote"
                );
            }
            let function = &inspection.shape.functions[dynamic.tools];
            answer(function, value?, &mut std::iter::empty(), &limits)
        };
        let told = Box::pin(run).await;
        let told = authority.conclude(told).map_err(in_vain)?;
        tokio::task::spawn_blocking(move || checked(told, until))
            .await
            .unwrap_or_else(|error| Err(unreadable().with_source(error)))
    }
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

/// The bounds of a call that must be over by then.
fn within(limits: &CallLimits, until: Instant) -> CallLimits {
    let mut limits = limits.clone();
    limits.wall_max = limits.wall_max.min(left(until));
    limits
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
