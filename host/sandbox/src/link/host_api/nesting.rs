//! Calls of tools by a guest: by grant, within the bounds of the call that they are part of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use wasmtime::StoreContextMut;

use super::reach::Reach;
use crate::call::state::HostState;
use crate::call::tally::{Full, Tally};
use crate::grants::{AccessRequest, EffectiveRights};
use crate::link::http::HttpBudget;
use toolwit_core::limits::LimitRequest;
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};
use toolwit_core::{ToolContext, ToolError, ToolResult, parse_arguments};

/// Counts the fuel of calls where the call that they are part of sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FuelMeter(Arc<AtomicU64>);

impl FuelMeter {
    /// Finds the meter of a call that is part of another one.
    pub(crate) fn of(context: &ToolContext) -> Option<Self> {
        context.extension::<Self>().cloned()
    }

    pub(crate) fn add(&self, fuel: u64) {
        self.0.fetch_add(fuel, Ordering::Relaxed);
    }

    fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// What a call asks for, if it does. One inside another has no more fuel than is left when it begins, whoever makes it: the guest itself,
    /// a native tool on its behalf, or work that an earlier one handed over.
    pub(crate) fn request(context: &ToolContext) -> Option<LimitRequest> {
        let mut request = context.extension::<LimitRequest>()?.clone();
        if let Some(meter) = Self::of(context) {
            request.fuel_max = request.fuel_max.map(|fuel| fuel.saturating_sub(meter.total()).max(1));
        }
        Some(request)
    }
}

/// What a call that is part of others knows about them.
#[derive(Clone, Debug)]
pub(crate) struct CallStack {
    /// How many calls there are around it.
    depth: u32,
    /// The calls that the calling plugin has made, its own callers considered.
    calls: Arc<Tally>,
    /// What is left of its requests, its own callers considered.
    http: Option<Arc<HttpBudget>>,
    /// The session instances that are being run.
    sessions: Arc<[u64]>,
    /// What the calling plugin may do.
    caller: Arc<EffectiveRights>,
}

impl CallStack {
    pub(crate) fn of(context: &ToolContext) -> Option<&Self> {
        context.extension::<Self>()
    }

    /// Begins to count the calls of a guest, which are calls of those around it too.
    pub(super) fn count_inside(context: &ToolContext, calls_max: u32) -> Arc<Tally> {
        let outer = Self::of(context).map(|stack| stack.calls.clone());
        Arc::new(Tally::new(calls_max.into(), outer))
    }

    /// The budget that requests are taken from, beside that of the call itself.
    pub(crate) fn http(&self) -> Option<Arc<HttpBudget>> {
        self.http.clone()
    }

    /// What the calling plugin may do, its own callers considered.
    pub(crate) fn caller(&self) -> &EffectiveRights {
        &self.caller
    }

    /// Refuses to enter an instance that waits for the end of this very call.
    ///
    /// # Errors
    /// [`ErrorKind::Reentrant`].
    pub(crate) fn require_outside(context: &ToolContext, session: u64) -> Result<(), Error> {
        match Self::of(context) {
            Some(stack) if stack.sessions.contains(&session) => Err(Error::new(
                ErrorKind::Reentrant,
                Phase::Execute,
                "the call would enter an instance that waits for its end",
            )
            .with_suggestion("call a function of another plugin, or none")),
            _ => Ok(()),
        }
    }
}

/// Calls a tool for a guest. The outer error is of the host, the inner one is told to the guest.
pub(super) async fn call(
    store: &mut StoreContextMut<'_, HostState>,
    tool: &str,
    arguments: &str,
) -> wasmtime::Result<Result<ToolResult, ToolError>> {
    let session = store.data().session();
    let (fuel, http) = (store.get_fuel()?, store.data().http_budget());
    let reach = store.data_mut().reach()?;
    let effective = &reach.authority.rights.effective;
    if let Err(denial) = effective.require(&AccessRequest::Tool(tool)) {
        reach.authority.deny(format!("call `{tool}`"), &denial, "tools", tool);
        let message = format!("it may not call `{tool}`: {denial}");
        return Ok(Err(ToolError::Model(Error::new(
            ErrorKind::Denied,
            Phase::Execute,
            message,
        ))));
    }
    let Some(tools) = reach.context.tools().cloned() else {
        let error = Error::new(
            ErrorKind::ToolUnavailable,
            Phase::Execute,
            "this call belongs to no conversation with tools",
        );
        return Ok(Err(ToolError::Model(error)));
    };
    let stack = match deeper(reach, session, http) {
        Ok(stack) => stack,
        Err(error) => return Ok(Err(ToolError::Model(error))),
    };
    // What the other plugin repeats is not redacted of this one's secrets. Before it is parsed, for those that are numbers; and
    // after it, for those that were escaped.
    let redactor = &reach.authority.redactor;
    let arguments = match parse_arguments(&redactor.text(arguments)) {
        Ok(parsed) => redactor.fields(parsed.arguments),
        Err(error) => return Ok(Err(ToolError::Model(error.into()))),
    };
    let meter = FuelMeter::default();
    let context = reach
        .context
        .clone()
        .without_background_tasks()
        .with_extension(what_is_left(reach, fuel))
        .with_extension(stack)
        .with_extension(meter.clone());
    let called = tools.call_tool(tool, arguments, &context).await;
    store.set_fuel(fuel.saturating_sub(meter.total()))?;
    if let Err(ToolError::Operator(error)) = &called {
        // The operator hears it; a guest is told no more than that.
        tracing::error!(tool, %error, "a tool that a plugin called failed");
        let message = format!("`{tool}` cannot be called: its operator must look into it first");
        let told = Error::new(ErrorKind::ToolUnavailable, Phase::Execute, message);
        return Ok(Err(ToolError::Model(told)));
    }
    Ok(called)
}

/// Counts one more call, inside this one.
fn deeper(reach: &Reach, session: Option<u64>, http: Option<Arc<HttpBudget>>) -> Result<CallStack, Error> {
    let outer = CallStack::of(&reach.context);
    // The outermost call is not in the stack: it began without one.
    let depth = outer.map_or(1, |stack| stack.depth).saturating_add(1);
    let depth_max = reach.limits.nested_depth_max;
    if depth > depth_max {
        let message = format!("calls may be {depth_max} deep inside each other");
        return Err(limit(message, "nested_depth_max", depth_max.into(), depth.into()));
    }
    if let Err(Full { max, used }) = reach.nested_calls().take(1) {
        let message = format!("a call may make {max} calls, those inside them included");
        return Err(limit(message, "nested_calls_max", max, used));
    }
    let sessions = outer.map_or(&[][..], |stack| &stack.sessions);
    Ok(CallStack {
        depth,
        calls: reach.nested_calls().clone(),
        http,
        sessions: sessions.iter().copied().chain(session).collect(),
        caller: Arc::new(reach.authority.rights.effective.clone()),
    })
}

fn limit(message: String, name: &'static str, max: u64, used: u64) -> Error {
    Error::new(ErrorKind::NestedCalls, Phase::Execute, message)
        .with_suggestion(format!("make fewer calls at once; an operator can raise `{name}`"))
        .with_limit(ExceededLimit::new(name, max, used))
}

/// Asks for no more than what is left of the call. What its calls share by count is counted where they are made.
fn what_is_left(reach: &Reach, fuel: u64) -> LimitRequest {
    let mut request = reach.context.extension::<LimitRequest>().cloned().unwrap_or_default();
    let wall = reach.deadline.saturating_duration_since(Instant::now());
    // A bound of zero counts as a mistake; what has nothing left ends at its first step.
    let (fuel, wall) = (fuel.max(1), wall.max(Duration::from_millis(1)));
    let depth = reach.limits.nested_depth_max;
    request.fuel_max = Some(request.fuel_max.map_or(fuel, |max| max.min(fuel)));
    request.wall_max = Some(request.wall_max.map_or(wall, |max| max.min(wall)));
    request.nested_depth_max = Some(request.nested_depth_max.map_or(depth, |max| max.min(depth)));
    request
}
