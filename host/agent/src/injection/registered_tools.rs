//! The strategy that follows a tool registry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::strategy::{Injection, InjectionStrategy};
use super::view::{InjectionContext, TurnContext};
use toolwit_core::{Tool, ToolId, ToolRegistry};

/// Offers the tools of a [`ToolRegistry`], and follows its changes: at the beginning of a turn and after each call. The next
/// request declares newly registered tools, and the new definition of a tool that was registered again.
///
/// An instance must be used in one conversation only, since it records the tools that the conversation already has.
pub struct RegisteredTools {
    registry: ToolRegistry,
    offered: Mutex<OfferedTools>,
}

/// The tools of the registry that the conversation already has.
#[derive(Default)]
struct OfferedTools {
    /// The version of the registry that contains exactly these tools.
    version: u64,
    tools: HashMap<ToolId, Arc<dyn Tool>>,
}

impl RegisteredTools {
    /// Offers the tools of a registry to one conversation.
    #[must_use]
    pub fn new(registry: ToolRegistry) -> Self {
        Self {
            registry,
            offered: Mutex::default(),
        }
    }

    /// Returns the changes of the registry since the previous call of this function.
    fn take_changes(&self) -> Injection {
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        if offered.version == self.registry.version() {
            return Injection::none();
        }
        let mut injection = Injection::none();
        let (registered, version) = self.registry.snapshot();
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
        // The remaining tools are no longer registered.
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
        self.registry.by_id(tool).map(|named| named.tool)
    }
}
