//! Tools that conditions unlock.

use std::sync::Arc;

use super::unlock::Unlock;
use crate::injection::strategy::{CallGate, Injection, InjectionStrategy};
use crate::injection::view::{ConversationView, InjectionContext};
use toolwit_core::{NamedTool, Tool, ToolId};

/// Tools with a recommended order: each tool may be locked until a condition holds.
///
/// All tools are declared from the start. A call of a locked tool returns the missing condition, and nothing runs. The
/// playbook is stateless: at each call, the conditions are evaluated against the call log and, for some conditions, the
/// blackboard. Tools that are not in the playbook are not affected.
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
///     .with_tool(tool("search")?)
///     .with_locked_tool(tool("analyze")?, Unlock::by("search"))
///     .with_locked_tool(tool("report")?, Unlock::by_all(["search", "analyze"]).or(Unlock::by_artifact("Analysis")));
/// assert_eq!(playbook.tools().len(), 3);
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Playbook {
    tools: Vec<PlaybookTool>,
}

#[derive(Clone)]
struct PlaybookTool {
    tool: Arc<dyn Tool>,
    lock: Option<Unlock>,
}

impl Playbook {
    /// Creates an empty playbook.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool that can be called from the start.
    #[must_use]
    pub fn with_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(PlaybookTool { tool, lock: None });
        self
    }

    /// Adds a tool that can be called once the condition holds.
    #[must_use]
    pub fn with_locked_tool(mut self, tool: Arc<dyn Tool>, unlock: Unlock) -> Self {
        let lock = Some(unlock);
        self.tools.push(PlaybookTool { tool, lock });
        self
    }

    /// Returns its tools. The conversation must have them.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.iter().map(|member| member.tool.clone()).collect()
    }

    fn lock_of(&self, tool: &ToolId) -> Option<&Unlock> {
        let member = self.tools.iter().find(|member| member.tool.definition().id == *tool);
        member?.lock.as_ref()
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
