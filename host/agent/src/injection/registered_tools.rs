//! The strategy that follows the changes of a shared tool set.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::strategy::{Injection, InjectionStrategy};
use super::view::{InjectionContext, TurnContext};
use toolwit_core::{SharedToolSet, Tool, ToolId};

/// Offers the tools of a [`SharedToolSet`], and follows its changes: at the beginning of a turn and after each call. The next
/// request declares newly registered tools, and the new definition of a tool that was registered again.
///
/// An instance must be used in one conversation only, since it records the tools that it has offered to the conversation.
pub struct RegisteredTools {
    shared_tools: SharedToolSet,
    offered: Mutex<OfferedTools>,
}

/// The tools of the shared set that were offered to the conversation.
#[derive(Default)]
struct OfferedTools {
    /// The version of the shared set from which `tools` were taken.
    version: u64,
    tools: HashMap<ToolId, Arc<dyn Tool>>,
}

impl RegisteredTools {
    /// Offers the tools of a shared set to one conversation.
    #[must_use]
    pub fn new(shared_tools: SharedToolSet) -> Self {
        Self {
            shared_tools,
            offered: Mutex::default(),
        }
    }

    /// Returns the changes of the shared set since the previous call of this function.
    fn take_changes(&self) -> Injection {
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        if offered.version == self.shared_tools.version() {
            return Injection::none();
        }
        let mut injection = Injection::none();
        let (registered, version) = self.shared_tools.snapshot();
        offered.version = version;
        let mut tools = HashMap::with_capacity(registered.len());
        for named in registered {
            let id = named.definition.id.clone();
            let offered_tool = offered.tools.remove(&id);
            if !offered_tool.is_some_and(|offered_tool| Arc::ptr_eq(&offered_tool, &named.tool)) {
                injection.add.push(named.tool.clone());
            }
            tools.insert(id, named.tool);
        }
        // The remaining tools were unregistered.
        injection.remove = offered.tools.drain().map(|(id, _)| id).collect();
        injection.remove.sort();
        offered.tools = tools;
        injection
    }
}

#[async_trait]
impl InjectionStrategy for RegisteredTools {
    fn initial_tools(&self) -> Vec<Arc<dyn Tool>> {
        self.take_changes().add
    }

    fn evaluate(&self, _context: &InjectionContext<'_>) -> Injection {
        self.take_changes()
    }

    async fn begin_turn(&self, _turn: &TurnContext<'_>) -> Injection {
        self.take_changes()
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        self.shared_tools.by_id(tool).map(|named| named.tool)
    }
}
