//! Turns to compute: how many guests compute at once, and which of the waiting guests is next.
//!
//! A guest needs a turn while its code runs, and holds none while it waits in a host call. A host that polls a guest therefore
//! takes the turn before the poll, and gives it back if the guest waits afterwards. If others wait for a turn, a guest that computes
//! for a tick gives its turn to the next of them.

use std::cell::Cell;
use std::collections::HashSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::fair_queue::{CallOwner, FairQueue, Place, Ticket};

thread_local! {
    /// Whether this thread polls a guest. A guest inside another guest's poll computes in the turn of the outer one.
    static IS_POLLING_GUEST: Cell<bool> = const { Cell::new(false) };
    /// Whether a guest has yielded to other tasks during the poll, and will continue to compute.
    static HAS_YIELDED: Cell<bool> = const { Cell::new(false) };
}

/// Records that the guest that this thread polls yields to other tasks, and continues to compute in its next poll.
pub(crate) fn record_yield() {
    HAS_YIELDED.set(true);
}

/// The turns to compute of all guests of a process.
#[derive(Debug)]
pub(crate) struct ComputeTurns {
    state: Mutex<TurnState>,
}

#[derive(Debug)]
struct TurnState {
    /// The number of turns that nobody holds. If it is positive, nobody waits.
    free: usize,
    queue: FairQueue<Waker>,
    /// The tickets that have a turn, which their guests have not taken yet.
    granted: HashSet<Ticket>,
}

/// The turn of one call, which its guest takes and gives back.
#[derive(Debug)]
pub(crate) struct Turn {
    /// `None` for a guest that computes without a turn.
    turns: Option<(Arc<ComputeTurns>, CallOwner)>,
    status: Mutex<TurnStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnStatus {
    /// The guest has not started.
    New,
    /// The guest waits in a host call.
    Released,
    /// The guest waits for a turn.
    Queued(Ticket),
    /// The guest may compute.
    Held,
}

impl ComputeTurns {
    pub(crate) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(TurnState {
                free: count.max(1),
                queue: FairQueue::default(),
                granted: HashSet::new(),
            }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TurnState {
    /// Gives a turn that was given back to the next waiting guest. Returns the guest's waker.
    fn pass_on(&mut self) -> Option<Waker> {
        match self.queue.pop(|_| true) {
            Some((ticket, _, waker)) => {
                self.granted.insert(ticket);
                Some(waker)
            }
            None => {
                self.free += 1;
                None
            }
        }
    }
}

impl Turn {
    /// Creates the turn of a guest. Its first poll takes it.
    pub(crate) fn new(turns: &Arc<ComputeTurns>, owner: CallOwner) -> Self {
        Self {
            turns: Some((turns.clone(), owner)),
            status: Mutex::new(TurnStatus::New),
        }
    }

    /// Creates the turn of a guest that does not wait for others, such as the start code of a spare instance.
    pub(crate) fn unlimited() -> Self {
        Self {
            turns: None,
            status: Mutex::new(TurnStatus::New),
        }
    }

    /// Takes the turn before the guest is polled for the first time.
    pub(crate) fn poll_take(&self, context: &mut Context<'_>) -> Poll<()> {
        if IS_POLLING_GUEST.get() {
            return Poll::Ready(());
        }
        let Some((turns, owner)) = &self.turns else {
            return Poll::Ready(());
        };
        let mut status = self.lock();
        let mut state = turns.lock();
        let place = match *status {
            TurnStatus::Held => return Poll::Ready(()),
            TurnStatus::Queued(ticket) => {
                if state.granted.remove(&ticket) {
                    *status = TurnStatus::Held;
                    return Poll::Ready(());
                }
                if let Some(waker) = state.queue.get_mut(owner, ticket) {
                    waker.clone_from(context.waker());
                }
                return Poll::Pending;
            }
            TurnStatus::New => Place::Last,
            TurnStatus::Released => Place::BeforeNewCalls,
        };
        if state.free > 0 {
            state.free -= 1;
            *status = TurnStatus::Held;
            return Poll::Ready(());
        }
        let ticket = state.queue.push(owner, place, context.waker().clone());
        *status = TurnStatus::Queued(ticket);
        Poll::Pending
    }

    /// Polls a guest when it has its turn. Gives the turn back if the guest then waits.
    pub(crate) fn poll_guest<F: Future + ?Sized>(
        &self,
        guest: Pin<&mut F>,
        context: &mut Context<'_>,
    ) -> Poll<F::Output> {
        if IS_POLLING_GUEST.get() {
            // The outer guest holds a turn, and sees whether this guest yields.
            self.give_back();
            return guest.poll(context);
        }
        if self.poll_take(context).is_pending() {
            return Poll::Pending;
        }
        HAS_YIELDED.set(false);
        let poll = poll_now(guest, context);
        if poll.is_pending() {
            if HAS_YIELDED.get() {
                self.give_way(context);
            } else {
                self.give_back();
            }
        }
        poll
    }

    /// Gives the turn back, or stops to wait for it.
    pub(crate) fn give_back(&self) {
        let Some((turns, owner)) = &self.turns else { return };
        let mut status = self.lock();
        let waker = match *status {
            TurnStatus::New | TurnStatus::Released => return,
            TurnStatus::Held => turns.lock().pass_on(),
            TurnStatus::Queued(ticket) => {
                let mut state = turns.lock();
                match state.queue.remove(owner, ticket) {
                    Some(_) => None,
                    None => {
                        state.granted.remove(&ticket);
                        state.pass_on()
                    }
                }
            }
        };
        *status = TurnStatus::Released;
        drop(status);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Gives the turn to the next guest, and waits for another turn, if other guests wait. It waits behind the new calls of its own
    /// conversation too: a long call must not keep short ones waiting until they fail.
    fn give_way(&self, context: &Context<'_>) {
        let Some((turns, owner)) = &self.turns else { return };
        let mut status = self.lock();
        let mut state = turns.lock();
        if *status != TurnStatus::Held || state.queue.is_empty() {
            return;
        }
        let ticket = state.queue.push(owner, Place::Last, context.waker().clone());
        *status = TurnStatus::Queued(ticket);
        let waker = state.pass_on();
        drop((state, status));
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, TurnStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Polls a guest without waiting for a turn. A guest that must stop is polled so, because it traps at once if it computes.
pub(crate) fn poll_now<F: Future + ?Sized>(guest: Pin<&mut F>, context: &mut Context<'_>) -> Poll<F::Output> {
    /// Restores the mark of the thread, also if the poll panics.
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_POLLING_GUEST.set(self.0);
        }
    }
    let _restore = Restore(IS_POLLING_GUEST.replace(true));
    guest.poll(context)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use super::*;
    use crate::grants::authority::ConversationNumber;
    use toolwit_core::PrincipalName;

    fn turn(turns: &Arc<ComputeTurns>, caller: &str) -> Turn {
        let owner = CallOwner {
            caller: Some(PrincipalName::new(caller)),
            conversation: ConversationNumber::default(),
        };
        Turn::new(turns, owner)
    }

    /// A guest that computes for one tick in each poll, and records it.
    async fn compute(name: &str, ticks: usize, log: &Mutex<Vec<String>>) {
        for _ in 0..ticks {
            log.lock().unwrap().push(name.to_owned());
            record_yield();
            tokio::task::yield_now().await;
        }
    }

    async fn run(turn: &Turn, guest: impl Future<Output = ()>) {
        let mut guest = pin!(guest);
        poll_fn(|context| turn.poll_guest(guest.as_mut(), context)).await;
        turn.give_back();
    }

    #[tokio::test]
    async fn guests_of_several_callers_compute_in_turn() {
        let (turns, log) = (ComputeTurns::new(1), Mutex::default());
        let (first, second) = (turn(&turns, "ann"), turn(&turns, "bob"));
        tokio::join!(
            run(&first, compute("ann", 3, &log)),
            run(&second, compute("bob", 3, &log))
        );
        assert_eq!(*log.lock().unwrap(), ["ann", "ann", "bob", "ann", "bob", "bob"]);
        assert_eq!(turns.lock().free, 1);
    }

    #[tokio::test]
    async fn guests_of_one_conversation_take_turns() {
        let (turns, log) = (ComputeTurns::new(1), Mutex::default());
        let first = turn(&turns, "ann");
        let owner = first.turns.as_ref().unwrap().1.clone();
        let second = Turn::new(&turns, owner);
        tokio::join!(
            run(&first, compute("first", 3, &log)),
            run(&second, compute("second", 3, &log))
        );
        assert_eq!(
            *log.lock().unwrap(),
            ["first", "first", "second", "first", "second", "second"]
        );
    }

    #[tokio::test]
    async fn a_guest_that_waits_holds_no_turn() {
        let turns = ComputeTurns::new(1);
        let (waiting, computing) = (turn(&turns, "ann"), turn(&turns, "ann"));
        let mut guest = pin!(std::future::pending::<()>());
        let poll = poll_fn(|context| Poll::Ready(waiting.poll_guest(guest.as_mut(), context))).await;
        assert!(poll.is_pending());
        poll_fn(|context| computing.poll_take(context)).await;
        assert_eq!(turns.lock().free, 0);
        let poll = poll_fn(|context| Poll::Ready(waiting.poll_guest(guest.as_mut(), context))).await;
        assert!(poll.is_pending(), "it waits for a turn before it continues");
        drop(computing);
        drop(waiting);
        assert_eq!(
            turns.lock().free,
            1,
            "a turn that was granted to a dropped guest is free"
        );
    }

    #[tokio::test]
    async fn a_guest_inside_another_guest_computes_in_the_turn_of_the_outer_one() {
        let turns = ComputeTurns::new(1);
        let (outer, inner) = (turn(&turns, "ann"), turn(&turns, "ann"));
        run(&outer, async {
            poll_fn(|context| inner.poll_take(context)).await;
            run(&inner, tokio::task::yield_now()).await;
        })
        .await;
        assert_eq!(turns.lock().free, 1);
    }
}
