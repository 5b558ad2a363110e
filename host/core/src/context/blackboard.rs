//! The blackboard: objects that the tools of a conversation or of an agent share.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;

use crate::limits::{BLACKBOARD_BYTES_MAX, BLACKBOARD_ENTRIES_MAX};
use crate::text::json_weight_of;
use crate::{Artifact, Error, ErrorKind, ExceededLimit, Phase};

/// The objects that the tools of a conversation or of an agent share, in insertion order.
///
/// Tools access the board through [`ToolContext::blackboard`](crate::ToolContext::blackboard). The model sees the objects only
/// through tools. An agent that a tool runs has a [board of its own](Self::new_child), which begins with the objects of the
/// outer board.
///
/// Objects are immutable. They are JSON, so that native tools and plugins can share them. An object can also be
/// [live](Artifact::live): native tools then share the Rust object itself.
///
/// ```
/// use serde_json::json;
/// use toolwit_core::{Artifact, Blackboard, MemoryBlackboard};
///
/// let board = MemoryBlackboard::new();
/// board.put(Artifact::new("crm::Customer", json!({"id": "c-1"})))?;
/// board.put_named("buyer", Artifact::new("crm::Customer", json!({"id": "c-2"})))?;
/// assert_eq!(board.count("Customer"), 2, "a simple name is enough");
/// assert_eq!(board.get("buyer").map(|entry| entry.value()["id"].clone()), Some(json!("c-2")));
/// # Ok::<(), toolwit_core::Error>(())
/// ```
pub trait Blackboard: Send + Sync {
    /// Adds an object, optionally with a name. If several objects have the same name, the name refers to the newest of them.
    ///
    /// # Errors
    /// [`ErrorKind::Resources`] if the board is full. No object is evicted, since tools may depend on it.
    fn place(&self, name: Option<&str>, object: Artifact) -> Result<(), Error>;

    /// Returns all entries, the oldest first.
    fn entries(&self) -> Vec<BlackboardEntry>;

    /// Creates the board of an agent that a tool runs, with the objects of this board. An object that the agent adds is not
    /// on this board until [`BlackboardSharing::apply`] copies it.
    fn new_child(&self) -> Arc<dyn Blackboard>;

    /// Adds an object without a name.
    ///
    /// # Errors
    /// As [`place`](Blackboard::place).
    fn put(&self, object: Artifact) -> Result<(), Error> {
        self.place(None, object)
    }

    /// Adds an object with a name.
    ///
    /// # Errors
    /// As [`place`](Blackboard::place).
    fn put_named(&self, name: &str, object: Artifact) -> Result<(), Error> {
        self.place(Some(name), object)
    }

    /// Returns the newest object with this name.
    fn get(&self, name: &str) -> Option<BlackboardEntry> {
        let mut entries = self.entries();
        let position = entries.iter().rposition(|entry| entry.name() == Some(name))?;
        Some(entries.swap_remove(position))
    }

    /// Returns the newest object whose type has this full or simple name, as in [`Artifact::is_a`].
    fn last(&self, kind: &str) -> Option<BlackboardEntry> {
        let mut entries = self.entries();
        let position = entries.iter().rposition(|entry| entry.is_a(kind))?;
        Some(entries.swap_remove(position))
    }

    /// Returns the number of objects whose type has this full or simple name, as in [`Artifact::is_a`].
    fn count(&self, kind: &str) -> usize {
        self.entries().iter().filter(|entry| entry.is_a(kind)).count()
    }
}

impl dyn Blackboard {
    /// Returns the newest object of a Rust type, deserialised from its JSON. The object must have been created with
    /// [`Artifact::of`] or [`Artifact::live`]. Returns `None` if there is no such object, or if the newest one cannot be
    /// deserialised.
    #[must_use]
    pub fn last_of<T: DeserializeOwned>(&self) -> Option<T> {
        let entry = self.last(std::any::type_name::<T>())?;
        serde_json::from_value(entry.value().clone()).ok()
    }

    /// Returns the newest live object of a Rust type that an artifact on the board [carries](Artifact::with_object).
    #[must_use]
    pub fn last_live<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let entries = self.entries();
        entries.iter().rev().find_map(|entry| entry.artifact().downcast())
    }
}

/// One object on a [`Blackboard`].
#[derive(Clone, Debug, PartialEq)]
pub struct BlackboardEntry {
    name: Option<Arc<str>>,
    object: Arc<Artifact>,
    is_inherited: bool,
}

impl BlackboardEntry {
    /// Creates an entry, for implementations of [`Blackboard`].
    #[must_use]
    pub fn new(name: Option<&str>, object: Artifact) -> Self {
        Self {
            name: name.map(Arc::from),
            object: Arc::new(object),
            is_inherited: false,
        }
    }

    /// Marks an entry as inherited from the outer board.
    #[must_use]
    pub fn inherited(mut self) -> Self {
        self.is_inherited = true;
        self
    }

    /// Returns the name of the object, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the full type name of the object.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.object.kind
    }

    /// Returns the JSON of the object.
    #[must_use]
    pub fn value(&self) -> &serde_json::Value {
        &self.object.value
    }

    /// Returns the object as an artifact: its type, its JSON and the live object, if there is one.
    #[must_use]
    pub fn artifact(&self) -> &Artifact {
        &self.object
    }

    /// Returns whether the entry is inherited from the outer board.
    #[must_use]
    pub fn is_inherited(&self) -> bool {
        self.is_inherited
    }

    /// Returns whether the type of the object has this full or simple name, as in [`Artifact::is_a`].
    #[must_use]
    pub fn is_a(&self, kind: &str) -> bool {
        self.object.is_a(kind)
    }
}

/// A blackboard in memory, with limits for the number and the total size of its objects.
#[derive(Default)]
pub struct MemoryBlackboard {
    limits: BlackboardLimits,
    content: Mutex<BoardContent>,
}

/// The limits of a [`MemoryBlackboard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlackboardLimits {
    /// Maximum number of objects.
    pub entries_max: usize,
    /// Maximum memory of all objects, including their names and types, in bytes. The memory is estimated from the JSON.
    pub bytes_max: u64,
}

impl Default for BlackboardLimits {
    fn default() -> Self {
        Self {
            entries_max: BLACKBOARD_ENTRIES_MAX,
            bytes_max: BLACKBOARD_BYTES_MAX,
        }
    }
}

#[derive(Clone, Default)]
struct BoardContent {
    entries: Vec<BlackboardEntry>,
    /// The estimated memory of the entries.
    bytes: u64,
}

impl MemoryBlackboard {
    /// Creates an empty board with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty board with these limits.
    #[must_use]
    pub fn with_limits(limits: BlackboardLimits) -> Self {
        Self {
            limits,
            content: Mutex::default(),
        }
    }

    fn content(&self) -> MutexGuard<'_, BoardContent> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Blackboard for MemoryBlackboard {
    fn place(&self, name: Option<&str>, object: Artifact) -> Result<(), Error> {
        let added_bytes = json_weight_of(&object) + name.map_or(0, str::len) as u64;
        let mut content = self.content();
        let bytes = content.bytes.saturating_add(added_bytes);
        let BlackboardLimits { entries_max, bytes_max } = self.limits;
        if content.entries.len() >= entries_max {
            let entries_max = entries_max as u64;
            return Err(full_board_error(ExceededLimit::new(
                "blackboard_entries_max",
                entries_max,
                entries_max + 1,
            )));
        }
        if bytes > bytes_max {
            return Err(full_board_error(ExceededLimit::new(
                "blackboard_bytes_max",
                bytes_max,
                bytes,
            )));
        }
        content.bytes = bytes;
        content.entries.push(BlackboardEntry::new(name, object));
        Ok(())
    }

    fn entries(&self) -> Vec<BlackboardEntry> {
        self.content().entries.clone()
    }

    fn new_child(&self) -> Arc<dyn Blackboard> {
        let mut content = self.content().clone();
        for entry in &mut content.entries {
            entry.is_inherited = true;
        }
        Arc::new(Self {
            limits: self.limits,
            content: Mutex::new(content),
        })
    }
}

/// Shows the number of entries only, since objects may be confidential.
impl fmt::Debug for MemoryBlackboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBlackboard")
            .field("entries", &self.content().entries.len())
            .finish_non_exhaustive()
    }
}

/// The objects of an agent's board that are added to the board of its caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BlackboardSharing {
    /// All objects that the agent added.
    #[default]
    All,
    /// The objects that the agent added and whose type has one of these full or simple names.
    Kinds(Vec<String>),
    /// No objects.
    Nothing,
}

impl BlackboardSharing {
    /// Copies the shared objects from the board `child` to the board `parent`, in insertion order. Inherited objects are skipped.
    ///
    /// # Errors
    /// The error of [`Blackboard::place`] for the first object that exceeds a limit. The objects before it are copied.
    pub fn apply(&self, child: &dyn Blackboard, parent: &dyn Blackboard) -> Result<(), Error> {
        let added_entries = child.entries().into_iter().filter(|entry| !entry.is_inherited());
        for entry in added_entries.filter(|entry| self.is_shared(entry)) {
            parent.place(entry.name(), entry.artifact().clone())?;
        }
        Ok(())
    }

    fn is_shared(&self, entry: &BlackboardEntry) -> bool {
        match self {
            Self::All => true,
            Self::Kinds(kinds) => kinds.iter().any(|kind| entry.is_a(kind)),
            Self::Nothing => false,
        }
    }
}

fn full_board_error(limit: ExceededLimit) -> Error {
    let message = format!("the blackboard is full: `{}` is {}", limit.limit, limit.max);
    Error::new(ErrorKind::Resources, Phase::Execute, message)
        .with_limit(limit)
        .with_suggestion("add fewer or smaller objects, or set larger `BlackboardLimits`")
}

#[cfg(test)]
mod tests;
