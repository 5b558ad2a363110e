//! The common path of all calls into guests.
//!
//! A [`GuardedCall`] runs these steps:
//!
//! 1. Check the arguments, resolve the authority and compute the limits.
//! 2. Wait for the compiled code, the session, a place among the live calls and a turn to compute.
//! 3. Run the guest until its deadline.
//! 4. Add the resource usage, the log and the artifacts to the result, and redact secrets from the result or the error.
//!
//! Each kind of call has its own [`GuestWork`]: calls of functions, calls in a session, commands, interceptors, and calls of
//! components that were built for another host. Apart from it, all kinds of calls are the same.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

use super::instance::Instance;
use super::plugin::Plugin;
use super::tool_result::require_artifacts_within;
use crate::grants::authority::{Authority, ConversationNumber};
use crate::link::compile::link_once::cancelled_before_start;
use crate::link::compile::linked_component::LinkedComponent;
use crate::link::host::host_api::CallStack;
use crate::link::host::wasi_context::Stdio;
use crate::link::limits::call_clock::CallClock;
use crate::link::limits::compute_turns::Turn;
use crate::link::limits::fair_queue::CallOwner;
use toolwit_core::limits::CallLimits;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{ToolContext, ToolResult};

/// The time after the authorization within which the guest may start without another check of the grants.
const RECHECK_AFTER: Duration = Duration::from_millis(10);

/// A call of a plugin that has not started.
#[derive(Clone, Copy)]
pub(crate) struct GuardedCall<'a> {
    pub(crate) plugin: &'a Arc<Plugin>,
    pub(crate) conversation: ConversationNumber,
    pub(crate) context: &'a ToolContext,
    /// The time at which the call must end, even if the call still waits for the compiler or a place. Without a deadline, only
    /// the limits of the call apply.
    pub(crate) deadline: Option<Instant>,
    /// Whether the operator declares the tool as long-running.
    pub(crate) is_long_running: bool,
}

/// A call that has its authority, its limits and its place among the live calls.
pub(crate) struct RunningCall<'a> {
    pub(crate) plugin: &'a Arc<Plugin>,
    pub(crate) component: &'a LinkedComponent,
    pub(crate) authority: &'a Authority,
    pub(crate) clock: CallClock<'a>,
}

/// The part of a call that differs between the kinds of calls. [`GuardedCall`] calls the methods in this order, each at most
/// once. After `run`, it calls either `return_instance` or `handle_dropped_instance`.
pub(crate) trait GuestWork: Send {
    /// Checks the arguments before the authority is resolved, so that a call with invalid arguments does not use up a grant.
    fn check(&mut self, _call: &GuardedCall<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Checks the authority before anything is compiled or waited for.
    fn check_authority(&self, _authority: &Authority) -> Result<(), Error> {
        Ok(())
    }

    /// Waits for a resource that the work needs in addition to a place, such as the lock of a session. Called before the call
    /// waits for its place. Returns the waiting time.
    fn enter(
        &mut self,
        _call: &GuardedCall<'_>,
        _authority: &Authority,
        _limits: &CallLimits,
    ) -> impl Future<Output = Result<Duration, Error>> + Send {
        std::future::ready(Ok(Duration::ZERO))
    }

    /// Returns the instance for the call: a fresh one, or one that the work keeps between calls.
    fn instance(&mut self, call: &RunningCall<'_>) -> impl Future<Output = Result<Instance, Error>> + Send {
        call.fresh_instance(Stdio::Log)
    }

    /// Runs guest code and converts its result.
    fn run(
        &mut self,
        instance: &mut Instance,
        call: &RunningCall<'_>,
    ) -> impl Future<Output = Result<ToolResult, Error>> + Send;

    /// Receives the instance after a call that left the instance intact. Either keeps the instance for later calls, or returns the
    /// instance so that the caller drops it.
    fn return_instance(&mut self, instance: Instance) -> Option<Instance> {
        Some(instance)
    }

    /// Called after the instance was dropped because of an error.
    fn handle_dropped_instance(&mut self, _error: &Error) {}
}

impl<'a> GuardedCall<'a> {
    /// Runs the call.
    ///
    /// # Errors
    /// The errors of the work, of resolving the authority and the limits, of compiling and waiting, and of guest code. A call
    /// whose grants were removed or changed while it waited fails with [`ErrorKind::Denied`]. Secrets are redacted from the
    /// errors.
    pub(crate) async fn run(self, work: &mut impl GuestWork) -> Result<ToolResult, Error> {
        if let Err(error) = work.check(&self) {
            return Err(self.redact(error).await);
        }
        let authority = self.plugin.authority(self.conversation, self.context).await?;
        let outcome = self.run_with_authority(&authority, work).await;
        authority.redact_and_report(outcome)
    }

    async fn run_with_authority(self, authority: &Authority, work: &mut impl GuestWork) -> Result<ToolResult, Error> {
        work.check_authority(authority)?;
        let authorized_at = Instant::now();
        let mut limits = self.plugin.limits_for(self.context, self.is_long_running)?;
        let component = match self.deadline {
            None => self.plugin.linked_component(self.context).await?,
            Some(deadline) => Box::pin(self.plugin.linked_component_within(self.context, time_until(deadline))).await?,
        };
        self.limit_to_deadline(&mut limits);
        let mut waiting_time = work.enter(&self, authority, &limits).await?;
        let owner = CallOwner::of(self.context, self.conversation);
        let (live_call, time_until_place) = self.plugin.live_calls().enter(&owner, self.context, &limits).await?;
        let turn = Turn::new(&self.plugin.runtime().turns, owner);
        waiting_time += time_until_place + take_turn(&turn, self.context, &limits).await?;
        if !waiting_time.is_zero() || authorized_at.elapsed() > RECHECK_AFTER {
            // Boxed, because this future rarely runs and would enlarge the future of every call.
            Box::pin(self.plugin.require_current(authority)).await?;
        }
        self.limit_to_deadline(&mut limits);
        let _ticking = self.plugin.runtime().engines.ticker.keep_running();
        let call = RunningCall {
            plugin: self.plugin,
            component: &component,
            authority,
            clock: CallClock::start(&limits, self.context).with_shares(turn, &self.plugin.runtime().budgets),
        };
        let mut instance = work.instance(&call).await?;
        let outcome = work.run(&mut instance, &call).await;
        let outcome = call.finish(&mut instance, outcome, waiting_time);
        match &outcome {
            // The store of a guest that trapped or was stopped is never entered again. After a result that exceeds its size
            // limit, the guest is still intact.
            Err(error) if error.kind != ErrorKind::ResultBytes => {
                drop(instance);
                work.handle_dropped_instance(error);
            }
            _ => {
                if let Some(instance) = work.return_instance(instance) {
                    let plugin = self.plugin.clone();
                    live_call.release_after(self.context, move || end_instance(instance, plugin, component, limits));
                }
            }
        }
        outcome
    }

    /// Redacts the secrets in the error of a call that has no authority yet. The error can contain a secret, because it can
    /// quote the error of an earlier call. If the secrets cannot be read, returns the error of reading them instead.
    async fn redact(&self, error: Error) -> Error {
        let caller = CallStack::of(self.context).map(CallStack::caller_rights);
        match self.plugin.redactor(self.conversation, caller, self.context).await {
            Ok(redactor) => error.redacted(&|text| redactor.redact_text(text).into_owned(), &|value| {
                redactor.redact_value(value)
            }),
            // The host cannot find secrets in the original error without knowing the secrets.
            Err(redactor_error) => redactor_error,
        }
    }

    /// Lowers the time limit of the call to the time that remains until its deadline.
    fn limit_to_deadline(&self, limits: &mut CallLimits) {
        if let Some(deadline) = self.deadline {
            limits.wall_max = limits.wall_max.min(time_until(deadline));
        }
    }
}

/// Drops the instance of a call. If the start of the instance is repeatable, plans a spare instance for a later call.
fn end_instance(instance: Instance, plugin: Arc<Plugin>, component: Arc<LinkedComponent>, limits: CallLimits) {
    let is_start_repeatable = instance.is_start_repeatable();
    drop(instance);
    if is_start_repeatable {
        plugin.plan_spare_instance(&component, limits);
    }
}

/// Waits until the guest of a new call may compute. Returns the waiting time.
///
/// # Errors
/// [`ErrorKind::Cancelled`] if the call is cancelled, and [`ErrorKind::Busy`] if it waits longer than `wall_max`.
async fn take_turn(turn: &Turn, context: &ToolContext, limits: &CallLimits) -> Result<Duration, Error> {
    if poll_fn(|context| Poll::Ready(turn.poll_take(context))).await.is_ready() {
        return Ok(Duration::ZERO);
    }
    let started = Instant::now();
    // Boxed, because this future rarely runs and would enlarge the future of every call.
    let wait = async {
        tokio::select! {
            biased;
            () = context.cancel_token().cancelled() => Err(cancelled_before_start()),
            () = poll_fn(|context| turn.poll_take(context)) => Ok(started.elapsed()),
            () = tokio::time::sleep(limits.wall_max) => Err(no_turn_error()),
        }
    };
    Box::pin(wait).await
}

/// Creates the error of a call that got no turn to compute.
fn no_turn_error() -> Error {
    Error::new(ErrorKind::Busy, Phase::Execute, "too many other calls are computing")
        .with_suggestion("call again when other calls have ended")
}

fn time_until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

impl RunningCall<'_> {
    /// Returns an instance that no other call has used. The start code of the guest runs under the limits of the call.
    pub(crate) async fn fresh_instance(&self, stdio: Stdio) -> Result<Instance, Error> {
        let (runtime, clock) = (self.plugin.runtime(), &self.clock);
        if matches!(stdio, Stdio::Log)
            && let Some(spare) = runtime.spares.take(self.component, clock.limits)
        {
            return Ok(Instance::from_spare(
                spare,
                self.component,
                clock,
                self.authority,
                &runtime.network,
            ));
        }
        Instance::new(self.component, clock, stdio, self.authority, &runtime.network).await
    }

    /// Adds the log, artifacts and usage of the instance to a result, or the log to an error. If the artifacts exceed the size
    /// limit, returns an error instead of the result. Then ends the instance's call.
    fn finish(
        &self,
        instance: &mut Instance,
        outcome: Result<ToolResult, Error>,
        waiting_time: Duration,
    ) -> Result<ToolResult, Error> {
        let log = instance.take_log(&self.authority.redactor);
        if let Some(log) = &log {
            tracing::debug!(plugin = self.plugin.name(), log = &**log, "guest output");
        }
        let outcome = outcome.and_then(|mut result| {
            let mut usage = instance.usage(&self.clock);
            usage.queued = waiting_time;
            result.usage = Some(usage);
            result.log.clone_from(&log);
            result.artifacts.extend(instance.take_artifacts());
            require_artifacts_within(&result, self.clock.limits)?;
            Ok(result)
        });
        instance.end_call();
        outcome.map_err(|error| match log {
            Some(_) => error.with_log(log),
            // Keeps the log that the work may have added to the error, such as the standard error of a program.
            None => error,
        })
    }
}
