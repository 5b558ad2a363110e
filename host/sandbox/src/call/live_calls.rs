//! The limit on the live calls of a plugin, and the queue of the calls that wait for a place.
//!
//! A live call has an instance, whether its guest computes or waits. A caller may have as many live calls as it leaves places free,
//! and a conversation as many as its caller leaves free, so that one of them cannot keep the others out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::grants::authority::ConversationNumber;
use crate::link::compile::link_once::cancelled_before_start;
use crate::link::host::host_api::CallStack;
use crate::link::limits::fair_queue::{CallOwner, FairQueue, Place, Ticket};
use toolwit_core::limits::CallLimits;
use toolwit_core::{DeferredWork, DeferredWorkHandle, Error, ErrorKind, Phase, PrincipalName, ToolContext};

/// The live calls of a plugin. Clones share them.
#[derive(Clone)]
pub(crate) struct LiveCalls {
    state: Arc<Mutex<State>>,
}

struct State {
    places: Places,
    /// The calls that wait for a place. Each receives it through its channel.
    queue: FairQueue<oneshot::Sender<LiveCall>>,
    /// The work that is deferred until the answers of ended calls have been delivered. Until then, these calls hold their places.
    deferred_work: Vec<DeferredWorkHandle>,
    /// The number of calls that wait for a place.
    waiting_count: usize,
}

/// The places for live calls, and how many each caller and each conversation holds.
struct Places {
    count_max: usize,
    count: usize,
    callers: HashMap<Option<PrincipalName>, CallerCount>,
}

#[derive(Default)]
struct CallerCount {
    count: usize,
    conversations: HashMap<ConversationNumber, usize>,
}

/// The place of a live call. Dropping it makes the place available to the next call.
pub(crate) struct LiveCall {
    /// `None` for a nested call, which belongs to the place of the outermost call.
    place: Option<(LiveCalls, CallOwner)>,
}

/// The wait of a call for a place. Dropping it removes the call from the queue.
struct Wait<'a> {
    calls: &'a LiveCalls,
    owner: &'a CallOwner,
    ticket: Ticket,
}

impl Places {
    /// Returns whether a call with this owner may start.
    fn may_start(&self, owner: &CallOwner) -> bool {
        let free = self.count_max.saturating_sub(self.count);
        let caller = self.callers.get(&owner.caller);
        let of_caller = caller.map_or(0, |caller| caller.count);
        let of_conversation = caller.map_or(0, |caller| {
            caller.conversations.get(&owner.conversation).copied().unwrap_or(0)
        });
        // What the caller may still take, so that it leaves as many places free as it has.
        let free_for_caller = free.saturating_sub(of_caller);
        free_for_caller > 0 && (of_conversation == 0 || of_conversation < free_for_caller)
    }

    fn add(&mut self, owner: &CallOwner) {
        self.count += 1;
        let caller = self.callers.entry(owner.caller.clone()).or_default();
        caller.count += 1;
        *caller.conversations.entry(owner.conversation).or_default() += 1;
    }

    fn remove(&mut self, owner: &CallOwner) {
        self.count = self.count.saturating_sub(1);
        let Some(caller) = self.callers.get_mut(&owner.caller) else {
            return;
        };
        caller.count = caller.count.saturating_sub(1);
        if let Some(count) = caller.conversations.get_mut(&owner.conversation) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                caller.conversations.remove(&owner.conversation);
            }
        }
        if caller.count == 0 {
            self.callers.remove(&owner.caller);
        }
    }
}

impl LiveCalls {
    pub(crate) fn new(count_max: usize) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                places: Places {
                    count_max: count_max.max(1),
                    count: 0,
                    callers: HashMap::new(),
                },
                queue: FairQueue::default(),
                deferred_work: Vec::new(),
                waiting_count: 0,
            })),
        }
    }

    /// Waits for a place. Returns the place and the waiting time. A nested call belongs to the place of the outermost call, because
    /// calls that hold one place and wait for a second could deadlock.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] if the call is cancelled, and [`ErrorKind::Busy`] if no place becomes available within
    /// `wall_max`.
    pub(crate) async fn enter(
        &self,
        owner: &CallOwner,
        context: &ToolContext,
        limits: &CallLimits,
    ) -> Result<(LiveCall, Duration), Error> {
        if context.cancel_token().is_cancelled() {
            return Err(cancelled_before_start());
        }
        if CallStack::of(context).is_some() {
            return Ok((LiveCall { place: None }, Duration::ZERO));
        }
        if let Some(call) = self.try_enter(owner) {
            return Ok((call, Duration::ZERO));
        }
        let started = Instant::now();
        // Boxed, because this future rarely runs and would enlarge the future of every call.
        let call = Box::pin(self.enter_in_turn(owner, context, limits)).await?;
        Ok((call, started.elapsed()))
    }

    fn try_enter(&self, owner: &CallOwner) -> Option<LiveCall> {
        let mut state = self.lock();
        state.places.may_start(owner).then(|| {
            state.places.add(owner);
            self.live_call(owner.clone())
        })
    }

    /// Waits until other calls have ended.
    async fn enter_in_turn(
        &self,
        owner: &CallOwner,
        context: &ToolContext,
        limits: &CallLimits,
    ) -> Result<LiveCall, Error> {
        let (sender, receiver) = oneshot::channel();
        let (ticket, due_work) = {
            let mut state = self.lock();
            state.waiting_count += 1;
            // The deferred work holds places.
            (
                state.queue.push(owner, Place::Last, sender),
                std::mem::take(&mut state.deferred_work),
            )
        };
        let _wait = Wait {
            calls: self,
            owner,
            ticket,
        };
        due_work.iter().for_each(DeferredWorkHandle::run);
        // A place may have become free before this call entered the queue.
        self.admit_waiting();
        tokio::select! {
            biased;
            () = context.cancel_token().cancelled() => Err(cancelled_before_start()),
            call = receiver => call.map_err(|_| busy_error()),
            () = tokio::time::sleep(limits.wall_max) => Err(busy_error()),
        }
    }

    /// Gives free places to waiting calls, in turn.
    fn admit_waiting(&self) {
        loop {
            let mut state = self.lock();
            let State { places, queue, .. } = &mut *state;
            let Some((_, owner, sender)) = queue.pop(|owner| places.may_start(owner)) else {
                return;
            };
            places.add(&owner);
            drop(state);
            // If the call no longer waits, the place is dropped here, and becomes free again.
            drop(sender.send(self.live_call(owner)));
        }
    }

    fn live_call(&self, owner: CallOwner) -> LiveCall {
        LiveCall {
            place: Some((self.clone(), owner)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveCall {
    /// Runs the remaining work of an ended call, and then makes the place available.
    ///
    /// If the context has a [`DeferredWork`], the work begins after the answer has been delivered, or earlier if another call
    /// waits for a place. Otherwise, the work runs at once, because waking another thread for the work would take longer. For a
    /// nested call, which has no place of its own, `work` is dropped and does not run.
    pub(crate) fn release_after(self, context: &ToolContext, work: impl FnOnce() + Send + 'static) {
        let Some((calls, _)) = &self.place else { return };
        let calls = calls.clone();
        let work = move || {
            work();
            drop(self);
        };
        let Some(deferred_work) = DeferredWork::of(context) else {
            work();
            return;
        };
        if let Some(handle) = deferred_work.defer(work) {
            let due_work = calls.lock().add_deferred(handle);
            due_work.iter().for_each(DeferredWorkHandle::run);
        }
    }
}

impl State {
    /// Adds deferred work. Returns the work that must run now: all deferred work if a call waits for a place, none otherwise.
    fn add_deferred(&mut self, new_work: DeferredWorkHandle) -> Vec<DeferredWorkHandle> {
        self.deferred_work.retain(|handle| !handle.has_begun());
        self.deferred_work.push(new_work);
        if self.waiting_count > 0 {
            std::mem::take(&mut self.deferred_work)
        } else {
            Vec::new()
        }
    }
}

impl Drop for LiveCall {
    fn drop(&mut self) {
        if let Some((calls, owner)) = self.place.take() {
            calls.lock().places.remove(&owner);
            calls.admit_waiting();
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut state = self.calls.lock();
        state.waiting_count -= 1;
        let sender = state.queue.remove(self.owner, self.ticket);
        drop((state, sender));
    }
}

/// Creates the error of a call that could not start.
fn busy_error() -> Error {
    Error::new(
        ErrorKind::Busy,
        Phase::Execute,
        "too many calls of this plugin are running",
    )
    .with_suggestion("call again when other calls have ended")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn owner(caller: &str) -> CallOwner {
        CallOwner {
            caller: Some(PrincipalName::new(caller)),
            conversation: ConversationNumber::default(),
        }
    }

    async fn enter(calls: &LiveCalls, owner: &CallOwner) -> LiveCall {
        let entered = calls.enter(owner, &ToolContext::new(), &CallLimits::default()).await;
        entered.ok().unwrap().0
    }

    fn count(calls: &LiveCalls) -> usize {
        calls.lock().places.count
    }

    fn deferring_context() -> (DeferredWork, ToolContext) {
        let deferred_work = DeferredWork::new();
        let context = ToolContext::new().with_extension(deferred_work.clone());
        (deferred_work, context)
    }

    #[tokio::test]
    async fn a_place_is_available_after_the_deferred_work() {
        let (calls, ann, (deferred_work, context)) = (LiveCalls::new(1), owner("ann"), deferring_context());
        enter(&calls, &ann).await.release_after(&context, || {});
        assert_eq!(count(&calls), 1);
        deferred_work.run();
        assert_eq!(count(&calls), 0);
        // The answer has been delivered, so the work runs at once and the place is available again.
        enter(&calls, &ann).await.release_after(&context, || {});
        enter(&calls, &ann).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_call_starts_before_the_answer_of_another_call_is_delivered() {
        let (calls, ann, (_deferred_work, context)) = (LiveCalls::new(1), owner("ann"), deferring_context());
        enter(&calls, &ann).await.release_after(&context, || {});
        let call = enter(&calls, &ann).await;
        let (second_call, ()) = tokio::join!(enter(&calls, &ann), async {
            tokio::task::yield_now().await;
            call.release_after(&context, || {});
        });
        assert!(second_call.place.is_some());
    }

    #[tokio::test]
    async fn a_place_is_available_when_the_context_is_dropped_before_the_answer() {
        let (calls, ann, (deferred_work, context)) = (LiveCalls::new(1), owner("ann"), deferring_context());
        enter(&calls, &ann).await.release_after(&context, || {});
        drop((deferred_work, context));
        assert_eq!(count(&calls), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_and_a_conversation_leave_places_for_others() {
        let (calls, ann, bob) = (LiveCalls::new(12), owner("ann"), owner("bob"));
        let mut live = Vec::new();
        while let Some(call) = calls.try_enter(&ann) {
            live.push(call);
        }
        assert_eq!(live.len(), 4, "one conversation has a third of the places");
        while let Some(call) = calls.try_enter(&owner("ann")) {
            live.push(call);
        }
        assert_eq!(live.len(), 6, "one caller has half of the places");
        let refused = calls.enter(&ann, &ToolContext::new(), &CallLimits::default()).await;
        assert_eq!(refused.err().unwrap().kind, ErrorKind::Busy);
        assert!(calls.try_enter(&bob).is_some());
        let (waiting, ()) = tokio::join!(enter(&calls, &ann), async {
            tokio::task::yield_now().await;
            live.clear();
        });
        assert_eq!(count(&calls), 1);
        drop(waiting);
        assert_eq!(count(&calls), 0);
        assert!(calls.lock().places.callers.is_empty());
    }
}
