//! The strategy that injects the tools of facades.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::made_again;
use super::opening::{FacadeOpening, address, find_present};
use crate::injection::strategy::{CallGate, Injection, InjectionStrategy, TriggeredInjection};
use crate::injection::view::{ConversationView, InjectionContext, TurnContext};
use toolwit_core::{NamedTool, Tool, ToolFacade, ToolId, decorator_chain};

/// Maximum number of tool names in the guidance of a tool that an exclusive facade locks.
const NAMES_SHOWN_MAX: usize = 20;

/// Injects the inner tools of a [`Facade`](super::Facade) when the facade is called. The strategy works for any tool whose result
/// has [`RevealedTools`](toolwit_core::RevealedTools).
///
/// The facade stays declared. Inner tools that are already present are not added again. Tools that were created for other
/// arguments are rebound under the same names. Tools that were made for another caller are made again when a turn begins with
/// this caller, or leave if the facade has guards, such as an approval: its next call then makes them.
///
/// The strategy is stateless: it derives the open facades from the call log and the lineage.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unfolding {
    /// Whether unused tools are folded at the start of a turn.
    has_refolding: bool,
}

impl Unfolding {
    /// Creates the strategy. Revealed tools stay declared.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Folds unused tools: from the start of each turn, a revealed tool that no message of the history calls is no longer
    /// declared. A call of a folded tool still runs, and declares the tool again.
    #[must_use]
    pub fn with_refolding(mut self) -> Self {
        self.has_refolding = true;
        self
    }
}

#[async_trait]
impl InjectionStrategy for Unfolding {
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        let call = context.call();
        match &call.result.revealed_tools {
            Some(revealed) if revealed.tools.is_empty() => {
                tracing::warn!(facade = %call.name, "a facade has no inner tools");
                Injection::none()
            }
            Some(revealed) if !call.result.is_error() => FacadeOpening::new(context, revealed).into_injection(),
            _ => Injection::none(),
        }
    }

    async fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let view = turn.view();
        let mut injection = Injection::none();
        if !self.has_refolding {
            return injection;
        }
        let calls = view.history().iter().flat_map(|message| message.tool_calls());
        let called_names: HashSet<_> = calls.map(|call| call.name.as_str()).collect();
        for tool in view.tools().iter() {
            let parent = view.lineage().parent(&tool.definition.id);
            let facade = parent.and_then(|id| view.tools().by_id(id));
            if facade.is_some_and(|facade| facade.tool.facade().is_some()) && !called_names.contains(tool.name.as_str())
            {
                injection.fold.push(tool.definition.id.clone());
            }
        }
        injection
    }

    async fn recover(&self, lost: &[ToolId], view: &ConversationView<'_>) -> Vec<Arc<dyn Tool>> {
        made_again::recover(lost, *view).await
    }

    async fn change_caller(&self, view: &ConversationView<'_>) -> Vec<TriggeredInjection> {
        made_again::change_caller(*view).await
    }

    fn gate(&self, tool: &NamedTool, view: &ConversationView<'_>) -> CallGate {
        let Some(open_facade) = ExclusiveFacade::find_open(view) else {
            return CallGate::Ungated;
        };
        let id = &tool.definition.id;
        if id.is_host() || *id == open_facade.facade.definition.id || open_facade.contains(tool) {
            return CallGate::Ungated;
        }
        CallGate::Locked(format!(
            "`{}` cannot be called now: `{}` is open, and until this turn ends only its tools can be called: {}; to leave it, \
             answer the user, and in the next turn all tools can be called again",
            tool.name,
            open_facade.facade.name,
            open_facade.tool_names()
        ))
    }
}

/// The exclusive facade that is open in the current turn.
struct ExclusiveFacade<'a> {
    view: ConversationView<'a>,
    facade: &'a NamedTool,
    contents: &'a dyn ToolFacade,
}

impl<'a> ExclusiveFacade<'a> {
    /// Returns the exclusive facade that was called last in this turn, or `None` if no facade is open. A facade without inner
    /// tools is not open, since it would leave the model without callable tools.
    fn find_open(view: &ConversationView<'a>) -> Option<Self> {
        let facades = view.tools().exclusive_facades();
        let called_this_turn = facades.filter_map(|facade| {
            let (position, call) = view.calls().last_success(&facade.definition.id)?;
            (call.turn == view.turn()).then_some((position, facade))
        });
        let mut latest_first: Vec<_> = called_this_turn.collect();
        latest_first.sort_by_key(|(position, _)| std::cmp::Reverse(*position));
        let candidates = latest_first.into_iter().filter_map(|(_, facade)| {
            Some(Self {
                view: *view,
                facade,
                contents: facade.tool.facade()?,
            })
        });
        candidates.into_iter().find(Self::has_inner_tools)
    }

    fn has_inner_tools(&self) -> bool {
        let tools = self.view.tools();
        let children = self.view.lineage().children(&self.facade.definition.id);
        let mut fixed_tools = self.contents.fixed_tools().iter();
        children.iter().any(|id| tools.by_id(id).is_some())
            || fixed_tools.any(|inner| find_present(inner, tools).is_some())
    }

    /// Returns whether the facade reveals a tool, directly or through results of the tools that it reveals.
    fn contains(&self, tool: &NamedTool) -> bool {
        let mut ancestors = self.view.lineage().ancestors(&tool.definition.id);
        let mut layers = decorator_chain(&tool.tool);
        let is_fixed_tool = |layer| {
            self.contents
                .fixed_tools()
                .iter()
                .any(|inner| address(inner) == address(layer))
        };
        ancestors.any(|ancestor| *ancestor == self.facade.definition.id) || layers.any(is_fixed_tool)
    }

    /// Returns the names of the first [`NAMES_SHOWN_MAX`] inner tools, for the model.
    fn tool_names(&self) -> String {
        let mut inner_tools = self.view.tools().iter().filter(|tool| self.contains(tool));
        let shown_tools = inner_tools.by_ref().take(NAMES_SHOWN_MAX);
        let mut names: Vec<_> = shown_tools.map(|tool| format!("`{}`", tool.name)).collect();
        if inner_tools.next().is_some() {
            names.push("and more".to_owned());
        }
        names.join(", ")
    }
}
