//! A queue that is fair among callers, and among the conversations of a caller.

use std::collections::VecDeque;

use crate::grants::authority::ConversationNumber;
use toolwit_core::{PrincipalName, ToolContext};

/// The caller and the conversation of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallOwner {
    /// `None` if the host does not distinguish callers.
    pub(crate) caller: Option<PrincipalName>,
    pub(crate) conversation: ConversationNumber,
}

/// A queue of entries with owners. The callers take turns, and within the turns of a caller its conversations take turns, so that
/// one of them with many entries does not delay the others. The entries of a conversation keep their order.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    callers: VecDeque<CallerQueue<T>>,
    next_ticket: u64,
}

/// The number of an entry, unique in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ticket(u64);

/// The place of a new entry among those of its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// After all others.
    Last,
    /// Before all entries that were added with [`Place::Last`].
    BeforeNewCalls,
}

#[derive(Debug)]
struct CallerQueue<T> {
    caller: Option<PrincipalName>,
    conversations: VecDeque<ConversationQueue<T>>,
}

#[derive(Debug)]
struct ConversationQueue<T> {
    conversation: ConversationNumber,
    entries: VecDeque<Entry<T>>,
}

#[derive(Debug)]
struct Entry<T> {
    ticket: Ticket,
    place: Place,
    value: T,
}

impl CallOwner {
    /// Returns the owner of a call with this context in this conversation.
    pub(crate) fn of(context: &ToolContext, conversation: ConversationNumber) -> Self {
        Self {
            caller: PrincipalName::of(context),
            conversation,
        }
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            callers: VecDeque::new(),
            next_ticket: 0,
        }
    }
}

impl<T> FairQueue<T> {
    /// Adds an entry.
    pub(crate) fn push(&mut self, owner: &CallOwner, place: Place, value: T) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let entry = Entry { ticket, place, value };
        let caller = match self.callers.iter_mut().position(|queue| queue.caller == owner.caller) {
            Some(index) => &mut self.callers[index],
            None => {
                self.callers.push_back(CallerQueue {
                    caller: owner.caller.clone(),
                    conversations: VecDeque::new(),
                });
                let last = self.callers.len() - 1;
                &mut self.callers[last]
            }
        };
        caller.push(owner.conversation, entry);
        ticket
    }

    /// Removes and returns the next entry whose owner is admissible.
    pub(crate) fn pop(&mut self, is_admissible: impl Fn(&CallOwner) -> bool) -> Option<(Ticket, CallOwner, T)> {
        let (caller_index, conversation_index, owner) = self.next_owner(is_admissible)?;
        let mut caller = self.callers.remove(caller_index)?;
        let mut conversation = caller.conversations.remove(conversation_index)?;
        let entry = conversation.entries.pop_front()?;
        if !conversation.entries.is_empty() {
            caller.conversations.push_back(conversation);
        }
        if !caller.conversations.is_empty() {
            self.callers.push_back(caller);
        }
        Some((entry.ticket, owner, entry.value))
    }

    fn next_owner(&self, is_admissible: impl Fn(&CallOwner) -> bool) -> Option<(usize, usize, CallOwner)> {
        for (caller_index, caller) in self.callers.iter().enumerate() {
            for (conversation_index, queue) in caller.conversations.iter().enumerate() {
                let owner = CallOwner {
                    caller: caller.caller.clone(),
                    conversation: queue.conversation,
                };
                if is_admissible(&owner) {
                    return Some((caller_index, conversation_index, owner));
                }
            }
        }
        None
    }

    /// Removes an entry. Returns `None` if the entry is not in the queue.
    pub(crate) fn remove(&mut self, owner: &CallOwner, ticket: Ticket) -> Option<T> {
        let caller_index = self.callers.iter().position(|queue| queue.caller == owner.caller)?;
        let caller = &mut self.callers[caller_index];
        let is_conversation = |queue: &ConversationQueue<T>| queue.conversation == owner.conversation;
        let conversation_index = caller.conversations.iter().position(is_conversation)?;
        let entries = &mut caller.conversations[conversation_index].entries;
        let entry_index = entries.iter().position(|entry| entry.ticket == ticket)?;
        let entry = entries.remove(entry_index)?;
        if entries.is_empty() {
            caller.conversations.remove(conversation_index);
        }
        if caller.conversations.is_empty() {
            self.callers.remove(caller_index);
        }
        Some(entry.value)
    }

    /// Returns an entry, or `None` if it is not in the queue.
    pub(crate) fn get_mut(&mut self, owner: &CallOwner, ticket: Ticket) -> Option<&mut T> {
        let caller = self.callers.iter_mut().find(|queue| queue.caller == owner.caller)?;
        let mut conversations = caller.conversations.iter_mut();
        let queue = conversations.find(|queue| queue.conversation == owner.conversation)?;
        let entry = queue.entries.iter_mut().find(|entry| entry.ticket == ticket)?;
        Some(&mut entry.value)
    }

    /// Returns whether no entry waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.callers.is_empty()
    }
}

impl<T> CallerQueue<T> {
    fn push(&mut self, conversation: ConversationNumber, entry: Entry<T>) {
        let mut queues = self.conversations.iter_mut();
        let Some(queue) = queues.find(|queue| queue.conversation == conversation) else {
            self.conversations.push_back(ConversationQueue {
                conversation,
                entries: VecDeque::from([entry]),
            });
            return;
        };
        let index = match entry.place {
            Place::Last => None,
            Place::BeforeNewCalls => queue.entries.iter().position(|other| other.place == Place::Last),
        };
        queue.entries.insert(index.unwrap_or(queue.entries.len()), entry);
    }
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

    fn pop_all<T>(queue: &mut FairQueue<T>) -> Vec<T> {
        std::iter::from_fn(|| queue.pop(|_| true))
            .map(|(_, _, value)| value)
            .collect()
    }

    #[test]
    fn callers_and_their_conversations_take_turns() {
        let mut queue = FairQueue::default();
        let (ann, bob) = (owner("ann"), owner("bob"));
        let second_of_ann = owner("ann");
        for value in ["ann 1", "ann 2", "ann 3"] {
            queue.push(&ann, Place::Last, value);
        }
        queue.push(&second_of_ann, Place::Last, "second conversation of ann");
        queue.push(&bob, Place::Last, "bob 1");
        queue.push(&bob, Place::Last, "bob 2");
        assert_eq!(
            pop_all(&mut queue),
            [
                "ann 1",
                "bob 1",
                "second conversation of ann",
                "bob 2",
                "ann 2",
                "ann 3"
            ]
        );
    }

    #[test]
    fn a_started_call_comes_before_the_new_calls_of_its_conversation() {
        let mut queue = FairQueue::default();
        let ann = owner("ann");
        queue.push(&ann, Place::Last, "new");
        queue.push(&ann, Place::BeforeNewCalls, "first started");
        queue.push(&ann, Place::BeforeNewCalls, "second started");
        assert!(!queue.is_empty());
        assert_eq!(pop_all(&mut queue), ["first started", "second started", "new"]);
        assert!(queue.is_empty());
    }

    #[test]
    fn an_entry_that_is_not_admissible_or_removed_does_not_delay_others() {
        let mut queue = FairQueue::default();
        let (ann, bob) = (owner("ann"), owner("bob"));
        let first = queue.push(&ann, Place::Last, "ann 1");
        let second = queue.push(&ann, Place::Last, "ann 2");
        queue.push(&bob, Place::Last, "bob 1");
        *queue.get_mut(&ann, second).unwrap() = "changed";
        assert_eq!(queue.pop(|owner| *owner != ann).unwrap().2, "bob 1");
        assert_eq!(queue.pop(|owner| *owner != ann), None);
        assert_eq!(queue.remove(&ann, first), Some("ann 1"));
        assert_eq!(queue.remove(&ann, first), None);
        assert_eq!(pop_all(&mut queue), ["changed"]);
    }
}
