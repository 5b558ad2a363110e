//! The strategy that locks tools until a condition holds.

use std::sync::Arc;

use super::unlock::Unlock;
use crate::injection::strategy::{CallGate, Injection, InjectionStrategy};
use crate::injection::view::{ConversationView, InjectionContext};
use toolwit_core::{Error, ErrorKind, NamedTool, Phase, SelectorMap, Tool, ToolSelector};

/// Tools, each of which can be locked until a condition holds. Locks make the model call the tools in a sensible order.
///
/// The tools of the playbook are declared from the start. A call of a locked tool does not run, and returns guidance on how to
/// satisfy the condition. The playbook is stateless: before each call, the conditions are evaluated on the view of the
/// conversation. Tools that are not in the playbook are not affected.
///
/// A lock belongs to the identity of a tool: it also locks the tool behind a facade and under another name. The lock of a
/// method applies to this method of every entity. The lock of a tool does not apply to the methods of the entities that the
/// tool returns.
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
    tools: Vec<Arc<dyn Tool>>,
    locks: SelectorMap<Unlock>,
    /// The tools that the conversation must have, unless the selector is late.
    referenced_tools: Vec<ToolSelector>,
    /// The tools of the first lock whose condition has an empty [`Unlock::by_any`].
    tools_with_empty_condition: Option<ToolSelector>,
    /// Whether a lock depends on earlier calls.
    depends_on_calls: bool,
    /// Whether the application called [`restarted`](Self::restarted).
    is_restarted: bool,
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
        self.referenced_tools.push(ToolSelector::from(&tool.definition().id));
        self.tools.push(tool);
        self
    }

    /// Adds a tool that can be called once the condition holds.
    #[must_use]
    pub fn with_locked_tool(self, tool: Arc<dyn Tool>, unlock: Unlock) -> Self {
        let id = tool.definition().id.clone();
        self.with_tool(tool).with_lock(id, unlock)
    }

    /// Locks tools until the condition holds. The conversation gets these tools in another way: from a plugin, behind a facade,
    /// from a search, or as methods of entities. Building the conversation fails if a part of the condition can never hold,
    /// because [`Unlock::by_any`] was called without tools.
    #[must_use]
    pub fn with_lock(mut self, tools: impl Into<ToolSelector>, unlock: Unlock) -> Self {
        let tools = tools.into();
        self.referenced_tools.extend(unlock.referenced_tools());
        self.depends_on_calls |= unlock.depends_on_calls();
        if unlock.has_empty_alternatives() {
            self.tools_with_empty_condition.get_or_insert_with(|| tools.clone());
        }
        self.locks.insert(&tools, unlock);
        self.referenced_tools.push(tools);
        self
    }

    /// Returns the playbook for a conversation that continues a history without its events: the earlier calls unlock
    /// nothing. Without this setting, building such a conversation fails if a lock depends on calls, because the tools would be
    /// locked again.
    #[must_use]
    pub fn restarted(mut self) -> Self {
        self.is_restarted = true;
        self
    }

    /// Returns the tools that were added to the playbook. The conversation must have them.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }
}

impl InjectionStrategy for Playbook {
    fn evaluate(&self, _context: &InjectionContext<'_>) -> Injection {
        Injection::none()
    }

    fn referenced_tools(&self) -> Vec<ToolSelector> {
        self.referenced_tools.clone()
    }

    fn requires_events(&self) -> bool {
        self.depends_on_calls && !self.is_restarted
    }

    fn check(&self) -> Result<(), Error> {
        let Some(tools) = &self.tools_with_empty_condition else {
            return Ok(());
        };
        let tools = tools
            .text()
            .map_or_else(|| "all tools".to_owned(), |text| format!("`{text}`"));
        let message = format!("a condition of {tools} can never hold: `Unlock::by_any` was called without tools");
        Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion("pass at least one tool to `by_any`, or omit the condition"))
    }

    fn gate(&self, tool: &NamedTool, view: &ConversationView<'_>) -> CallGate {
        let locks = self.locks.get(&tool.tool, Some(&tool.name)).into_iter();
        let gates = locks.map(|lock| match lock.guidance(view) {
            None => CallGate::Unlocked,
            Some(guidance) => CallGate::Locked(format!("`{}` is not available yet: {guidance}", tool.name)),
        });
        gates.fold(CallGate::Ungated, CallGate::and)
    }
}
