//! Nested calls: tools that a guest calls. The grants of the guest and the limits of the surrounding call apply.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use wasmtime::StoreContextMut;

use super::conversation_access::ConversationAccess;
use crate::grants::{AccessRequest, EffectiveRights};
use crate::link::host::host_state::HostState;
use crate::link::host::http::HttpBudget;
use crate::link::limits::nested_budget::{BudgetExceeded, NestedBudget};
use toolwit_core::limits::LimitOverrides;
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};
use toolwit_core::{ToolContext, ToolError, ToolResult, parse_arguments};

/// A counter of the fuel that the nested calls of one call have used. The contexts of the nested calls have it as an extension.
#[derive(Clone, Debug, Default)]
pub(crate) struct FuelMeter(Arc<AtomicU64>);

impl FuelMeter {
    /// Returns the meter in the context of a nested call. Returns `None` for an outermost call.
    pub(crate) fn of(context: &ToolContext) -> Option<Self> {
        context.extension::<Self>().cloned()
    }

    pub(crate) fn add(&self, fuel: u64) {
        self.0.fetch_add(fuel, Ordering::Relaxed);
    }

    fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the limits that the context of a call requests, or `None` if the context requests no limits. Subtracts the fuel that
    /// earlier calls with the same meter have used, because the calls that a nested native tool makes share the same fuel.
    pub(crate) fn requested_limits(context: &ToolContext) -> Option<LimitOverrides> {
        let mut overrides = context.extension::<LimitOverrides>()?.clone();
        if let Some(meter) = Self::of(context) {
            overrides.fuel_max = overrides.fuel_max.map(|fuel| fuel.saturating_sub(meter.total()).max(1));
        }
        Some(overrides)
    }
}

/// The depth of a nested call, and the budgets, sessions and rights of the calls that surround it. The context of the nested call
/// has it as an extension.
#[derive(Clone, Debug)]
pub(crate) struct CallStack {
    /// The depth of the nested call. The outermost call has the depth 1.
    depth: u32,
    /// The budget of the calling plugin's nested calls, which are also charged to the budgets of its callers.
    call_budget: Arc<NestedBudget>,
    /// The HTTP budget of the calling plugin, which is also charged to the budgets of its callers.
    http_budget: Option<Arc<HttpBudget>>,
    /// The numbers of the sessions that the surrounding calls hold. Their instances wait until the nested call ends.
    held_sessions: Arc<[u64]>,
    /// The effective rights of the calling plugin, limited to those of its callers.
    caller_rights: Arc<EffectiveRights>,
}

impl CallStack {
    /// Returns the stack of a nested call, or `None` for an outermost call.
    pub(crate) fn of(context: &ToolContext) -> Option<&Self> {
        context.extension::<Self>()
    }

    /// Creates the budget for the nested calls of a guest, whose call has this context. The nested calls are also charged to the
    /// budget of the surrounding call.
    pub(super) fn nested_call_budget(context: &ToolContext, calls_max: u32) -> Arc<NestedBudget> {
        let outer = Self::of(context).map(|stack| stack.call_budget.clone());
        Arc::new(NestedBudget::new(calls_max.into(), outer))
    }

    /// Returns the HTTP budget that the nested call also draws on.
    pub(crate) fn http_budget(&self) -> Option<Arc<HttpBudget>> {
        self.http_budget.clone()
    }

    /// Returns the effective rights of the calling plugin, limited to those of its callers.
    pub(crate) fn caller_rights(&self) -> &EffectiveRights {
        &self.caller_rights
    }

    /// Returns the numbers of the sessions that the calls around a call hold. Their instances wait until the call ends.
    pub(crate) fn held_sessions(context: &ToolContext) -> Arc<[u64]> {
        Self::of(context).map_or_else(|| [].into(), |stack| stack.held_sessions.clone())
    }

    /// Refuses a call into the instance of `session` if this instance waits for the call to end.
    ///
    /// # Errors
    /// [`ErrorKind::Reentrant`].
    pub(crate) fn require_not_reentrant(context: &ToolContext, session: u64) -> Result<(), Error> {
        match Self::of(context) {
            Some(stack) if stack.held_sessions.contains(&session) => Err(Error::new(
                ErrorKind::Reentrant,
                Phase::Execute,
                "the call would enter an instance that waits for this call to end",
            )
            .with_suggestion("call a function of another plugin")),
            _ => Ok(()),
        }
    }
}

/// Calls a tool for a guest. The inner error is returned to the guest; the outer one traps it.
pub(in crate::link::host) async fn call(
    store: &mut StoreContextMut<'_, HostState>,
    tool: &str,
    arguments: &str,
) -> wasmtime::Result<Result<ToolResult, ToolError>> {
    let session = store.data().session();
    let (fuel, http_budget) = (store.get_fuel()?, store.data().http_budget());
    let conversation = store.data_mut().conversation()?;
    if let Err(denial) = conversation.authority.require_access(&AccessRequest::Tool(tool)) {
        let message = format!("the plugin may not call `{tool}`: {}", denial.reason_for_guest());
        return Ok(Err(ToolError::Model(Error::new(
            ErrorKind::Denied,
            Phase::Execute,
            message,
        ))));
    }
    let Some(tools) = conversation.context.tools().cloned() else {
        let error = Error::new(
            ErrorKind::ToolUnavailable,
            Phase::Execute,
            "this call does not belong to a conversation with tools",
        );
        return Ok(Err(ToolError::Model(error)));
    };
    let stack = match stack_for_nested_call(conversation, session, http_budget) {
        Ok(stack) => stack,
        Err(error) => return Ok(Err(ToolError::Model(error))),
    };
    // The secrets of this plugin are redacted in the arguments, because the result of the called tool is not searched for them.
    // Redacting the JSON text finds secrets that are numbers. Redacting the parsed values finds secrets that were escaped.
    let redactor = &conversation.authority.redactor;
    let arguments = match parse_arguments(&redactor.redact_text(arguments)) {
        Ok(parsed) => redactor.redact_arguments(parsed.arguments),
        Err(error) => return Ok(Err(ToolError::Model(error.into()))),
    };
    let meter = FuelMeter::default();
    let context = conversation
        .context
        .clone()
        .without_background_tasks()
        .with_extension(remaining_limits(conversation, fuel))
        .with_extension(stack)
        .with_extension(conversation.questions.clone())
        .with_extension(meter.clone());
    let context = conversation.deadline.add_clock_to(context);
    let authority = conversation.authority.clone();
    let mut outcome = tools.call_tool(tool, arguments, &context).await;
    authority.record_nested(match &mut outcome {
        Ok(result) => std::mem::take(&mut result.denied),
        Err(error) => error.report().denied.clone(),
    });
    store.set_fuel(fuel.saturating_sub(meter.total()))?;
    if let Err(ToolError::Operator(error)) = &outcome {
        // Only the operator receives the error; the guest receives only that the call failed.
        tracing::error!(tool, %error, "nested tool call failed");
        let message = format!("`{tool}` cannot be called: its operator must fix it first");
        let error = Error::new(ErrorKind::ToolUnavailable, Phase::Execute, message);
        return Ok(Err(ToolError::Model(error)));
    }
    Ok(outcome)
}

/// Creates the call stack for a nested call of the guest, and takes one call from its budget.
///
/// # Errors
/// [`ErrorKind::NestedCalls`] if the call would exceed the depth or the budget.
fn stack_for_nested_call(
    conversation: &ConversationAccess,
    session: Option<u64>,
    http_budget: Option<Arc<HttpBudget>>,
) -> Result<CallStack, Error> {
    let outer = CallStack::of(&conversation.context);
    // The outermost call has the depth 1 and no stack.
    let depth = outer.map_or(1, |stack| stack.depth).saturating_add(1);
    let depth_max = conversation.limits.nested_depth_max;
    if depth > depth_max {
        let message = format!("calls may be nested at most {depth_max} deep");
        return Err(limit_exceeded(
            message,
            "nested_depth_max",
            depth_max.into(),
            depth.into(),
        ));
    }
    if let Err(BudgetExceeded { max, used }) = conversation.nested_budget().take(1) {
        let message = format!("a call may make at most {max} calls, including nested ones");
        return Err(limit_exceeded(message, "nested_calls_max", max, used));
    }
    let held_sessions = outer.map_or(&[][..], |stack| &stack.held_sessions);
    Ok(CallStack {
        depth,
        call_budget: conversation.nested_budget().clone(),
        http_budget,
        held_sessions: held_sessions.iter().copied().chain(session).collect(),
        caller_rights: Arc::new(conversation.authority.rights.effective.clone()),
    })
}

fn limit_exceeded(message: String, name: &'static str, max: u64, used: u64) -> Error {
    Error::new(ErrorKind::NestedCalls, Phase::Execute, message)
        .with_suggestion(format!("make fewer nested calls; an operator can raise `{name}`"))
        .with_limit(ExceededLimit::new(name, max, used))
}

/// Returns the limits for a nested call: the fuel and the time that are left, and the maximum depth. Nested calls and
/// HTTP are not limited here, because the nested call draws on the budgets of its callers.
fn remaining_limits(conversation: &ConversationAccess, fuel: u64) -> LimitOverrides {
    let mut overrides = conversation
        .context
        .extension::<LimitOverrides>()
        .cloned()
        .unwrap_or_default();
    let wall = conversation
        .deadline
        .instant()
        .saturating_duration_since(Instant::now());
    // A limit of zero is invalid. With one unit of fuel or one millisecond, the call ends at once.
    let (fuel, wall) = (fuel.max(1), wall.max(Duration::from_millis(1)));
    let depth = conversation.limits.nested_depth_max;
    overrides.fuel_max = Some(overrides.fuel_max.map_or(fuel, |max| max.min(fuel)));
    overrides.wall_max = Some(overrides.wall_max.map_or(wall, |max| max.min(wall)));
    overrides.nested_depth_max = Some(overrides.nested_depth_max.map_or(depth, |max| max.min(depth)));
    overrides
}
