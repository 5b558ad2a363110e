//! Tools that are unlocked by what happened before.

use std::sync::Arc;

use super::change::Injection;
use super::context::InjectionContext;
use super::gate::CallGate;
use super::strategy::InjectionStrategy;
use super::unlock::Unlock;
use super::view::ConversationView;
use toolwit_core::{NamedTool, Tool, ToolId};

/// Tools in the order in which they make sense: each may be locked until a condition holds.
///
/// All are declared from the start. A locked one that is called answers with what is missing, and nothing runs. Whether a tool
/// is unlocked follows from the calls of the conversation, and for some conditions from its blackboard, at each call anew.
/// Tools that are not in the playbook are none of its business.
///
/// ```
/// use std::sync::Arc;
///
/// use toolwit_agent::injection::{Playbook, Unlock};
/// use toolwit_core::{NativeTool, NoArguments, Tool};
///
/// # fn tool(name: &str) -> Result<Arc<dyn Tool>, toolwit_core::Error> {
/// #     Ok(Arc::new(NativeTool::typed(name, "", |_: NoArguments, _| async { Ok::<_, String>("done") })?))
/// # }
/// let playbook = Playbook::new()
///     .tool(tool("search")?)
///     .locked(tool("analyze")?, Unlock::by("search"))
///     .locked(tool("report")?, Unlock::by_all(["search", "analyze"]).or(Unlock::by_artifact("Analysis")));
/// assert_eq!(playbook.tools().len(), 3);
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Playbook {
    entries: Vec<Entry>,
}

#[derive(Clone)]
struct Entry {
    tool: Arc<dyn Tool>,
    lock: Option<Unlock>,
}

impl Playbook {
    /// Makes an empty playbook.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool that may be called from the start.
    #[must_use]
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.entries.push(Entry { tool, lock: None });
        self
    }

    /// Adds a tool that may be called once the condition holds.
    #[must_use]
    pub fn locked(mut self, tool: Arc<dyn Tool>, unlock: Unlock) -> Self {
        let lock = Some(unlock);
        self.entries.push(Entry { tool, lock });
        self
    }

    /// Returns its tools, which the conversation must have.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.entries.iter().map(|entry| entry.tool.clone()).collect()
    }

    fn lock_of(&self, tool: &ToolId) -> Option<&Unlock> {
        let entry = self.entries.iter().find(|entry| entry.tool.definition().id == *tool);
        entry?.lock.as_ref()
    }
}

impl InjectionStrategy for Playbook {
    fn evaluate(&self, _context: &InjectionContext<'_>) -> Injection {
        Injection::none()
    }

    fn gate(&self, tool: &NamedTool, view: &ConversationView<'_>) -> CallGate {
        match self.lock_of(&tool.definition.id).map(|lock| lock.missing(view)) {
            None => CallGate::Ungated,
            Some(None) => CallGate::Open,
            Some(Some(missing)) => CallGate::Locked(format!("`{}` is not available yet: {missing}", tool.name)),
        }
    }
}
