//! Calls of tools by a guest: by grant, within the bounds of the call that they are part of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tokio::time::Instant;
use wasmtime::StoreContextMut;

use super::reach::Reach;
use crate::capability::{Access, Decision, Effective, decide};
use crate::error::{Error, ErrorKind, LimitUse, Phase};
use crate::limits::LimitRequest;
use crate::plugin::state::HostState;
use crate::tool::{ToolContext, ToolError, ToolResult, parse_arguments};

/// How many calls may be inside each other, the outermost included.
const DEPTH_MAX: u32 = 4;

/// How many calls a call may make, those that its calls make included.
const CALLS_MAX: u32 = 32;

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
}

/// What a call that is part of others knows about them.
#[derive(Clone, Debug)]
pub(crate) struct CallStack {
    /// How many calls there are around it.
    depth: u32,
    /// How many calls the outermost has made.
    calls: Arc<AtomicU32>,
    /// The session instances that are being run.
    sessions: Arc<[u64]>,
    /// What the calling plugin may do.
    caller: Arc<Effective>,
}

impl CallStack {
    pub(crate) fn of(context: &ToolContext) -> Option<&Self> {
        context.extension::<Self>()
    }

    /// The count of calls that the outermost has made.
    pub(crate) fn calls(&self) -> Arc<AtomicU32> {
        self.calls.clone()
    }

    /// What the calling plugin may do, its own callers considered.
    pub(crate) fn caller(&self) -> &Effective {
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
    let fuel = store.get_fuel()?;
    let reach = store.data_mut().reach()?;
    let effective = &reach.authority.granted.effective;
    if let Decision::Denied(denial) = decide(effective, &Access::Tool(tool)) {
        reach
            .authority
            .deny(format!("call `{tool}`"), &denial, &format!("--tool {tool}"));
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
    let stack = match deeper(reach, session) {
        Ok(stack) => stack,
        Err(error) => return Ok(Err(ToolError::Model(error))),
    };
    // What the other plugin repeats is not redacted of this one's secrets.
    let arguments = match parse_arguments(&reach.authority.redactor.text(arguments)) {
        Ok(parsed) => parsed.arguments,
        Err(error) => return Ok(Err(ToolError::Model(error.into()))),
    };
    let meter = FuelMeter::default();
    let context = reach
        .context
        .clone()
        .without_completion()
        .with_extension(what_is_left(&reach.context, fuel, reach.deadline))
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
fn deeper(reach: &Reach, session: Option<u64>) -> Result<CallStack, Error> {
    let outer = CallStack::of(&reach.context);
    // The outermost call is not in the stack: it began without one.
    let depth = outer.map_or(1, |stack| stack.depth) + 1;
    if depth > DEPTH_MAX {
        let message = format!("calls may be {DEPTH_MAX} deep inside each other");
        let used = LimitUse::new("nested_depth_max", DEPTH_MAX.into(), depth.into());
        return Err(Error::new(ErrorKind::HostCalls, Phase::Execute, message).with_limit(used));
    }
    let made = reach.nested_calls.fetch_add(1, Ordering::Relaxed).saturating_add(1);
    if made > CALLS_MAX {
        let message = format!("a call may make {CALLS_MAX} calls, those inside them included");
        let used = LimitUse::new("nested_calls_max", CALLS_MAX.into(), made.into());
        return Err(Error::new(ErrorKind::HostCalls, Phase::Execute, message).with_limit(used));
    }
    let sessions = outer.map_or(&[][..], |stack| &stack.sessions);
    Ok(CallStack {
        depth,
        calls: reach.nested_calls.clone(),
        sessions: sessions.iter().copied().chain(session).collect(),
        caller: Arc::new(reach.authority.granted.effective.clone()),
    })
}

/// Asks for no more than what is left of the call.
fn what_is_left(context: &ToolContext, fuel: u64, deadline: Instant) -> LimitRequest {
    let asked = context.extension::<LimitRequest>().cloned().unwrap_or_default();
    let wall = deadline.saturating_duration_since(Instant::now());
    // A bound of zero counts as a mistake; what has nothing left ends at its first step.
    let (fuel, wall) = (fuel.max(1), wall.max(std::time::Duration::from_millis(1)));
    LimitRequest {
        fuel_max: Some(asked.fuel_max.map_or(fuel, |max| max.min(fuel))),
        wall_max: Some(asked.wall_max.map_or(wall, |max| max.min(wall))),
        ..asked
    }
}
