//! The strategy that injects the tools of facades.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;

use super::context_tool::{ToolDescription, context_tool};
use crate::injection::strategy::{CallGate, Injection, InjectionStrategy, WithheldTool};
use crate::injection::view::{ConversationView, InjectionContext, TurnContext};
use toolwit_core::limits::FACADE_DEPTH_MAX;
use toolwit_core::{
    NamedTool, RevealedTools, Tool, ToolDefinition, ToolExt, ToolFacade, ToolId, ToolSet, decorator_chain,
};

/// Maximum number of tool names in the guidance of a tool that an exclusive facade locks.
const NAMES_SHOWN_MAX: usize = 20;

/// Injects the inner tools of a [`Facade`](super::Facade) when the facade is called. The strategy works for any tool whose result
/// has [`RevealedTools`](toolwit_core::RevealedTools).
///
/// The facade stays declared. Inner tools that are already present are not added again. Tools that were created for other
/// arguments are rebound under the same names.
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

/// The evaluation of one facade call.
struct FacadeOpening<'a> {
    context: &'a InjectionContext<'a>,
    revealed: &'a RevealedTools,
    facade_id: ToolId,
    /// Whether the previous successful call of the facade had the same arguments.
    is_repeated: bool,
    injection: Injection,
}

impl<'a> FacadeOpening<'a> {
    fn new(context: &'a InjectionContext<'a>, revealed: &'a RevealedTools) -> Self {
        let call = context.call();
        let facade_id = call.tool.definition().id.clone();
        let previous_call = context.calls().last_success(&facade_id);
        Self {
            is_repeated: previous_call.is_some_and(|(_, previous)| previous.arguments == call.arguments),
            context,
            revealed,
            facade_id,
            injection: Injection::none(),
        }
    }

    /// Returns the injection that adds the revealed tools and their context tool. If the facade is nested too deep, the
    /// injection only withholds it.
    fn into_injection(mut self) -> Injection {
        if self.outer_facades().count() >= FACADE_DEPTH_MAX {
            let reason = format!("it is nested in {FACADE_DEPTH_MAX} facades, which is the limit");
            self.withhold(self.context.call().name.as_str().to_owned(), reason);
            return self.injection;
        }
        for tool in &self.revealed.tools {
            self.reveal(tool);
        }
        self.add_context_tool();
        self.injection
    }

    /// Lists an inner tool, and adds it to the conversation. The tool is not added again if it is present, or if a tool with its
    /// id is present and the arguments of the facade did not change. A tool is withheld instead if it would be nested in itself,
    /// or if the application removed it.
    fn reveal(&mut self, tool: &Arc<dyn Tool>) {
        let tools = self.context.tools();
        if let Some(present) = find_present(tool, tools) {
            self.injection.listed.push(present.definition.id.clone());
            return;
        }
        let name = tool.definition().name();
        if tool.facade().is_some() && self.is_within(&innermost(tool).definition().id) {
            self.withhold(name.to_owned(), "it would be nested in itself".to_owned());
            return;
        }
        let tool = self.with_scoped_id(tool);
        if tools.is_excluded(&tool) {
            self.withhold(name.to_owned(), "it was removed from the conversation".to_owned());
            return;
        }
        let id = tool.definition().id.clone();
        let is_present = tools.by_id(&id).is_some();
        if !(is_present && self.is_repeated) {
            self.injection.add.push(tool);
        }
        self.injection.listed.push(id);
    }

    /// Scopes the id of a native tool to its facade, since two facades may have native tools of the same name. Plugin tools
    /// and host tools keep their ids, which are unique. Locks and decorators of the original id still apply.
    fn with_scoped_id(&self, tool: &Arc<dyn Tool>) -> Arc<dyn Tool> {
        let definition = tool.definition();
        if !definition.id.is_native() {
            return tool.clone();
        }
        let facade = &self.context.call().name;
        let mut names = definition.names.clone();
        names.extend(definition.names.first().map(|name| format!("{facade}_{name}")));
        let id = definition.id.within(&self.facade_id);
        Arc::new(tool.clone().with_identity(id, names))
    }

    /// Adds `<facade>_context`, which describes all tools that the facade has revealed so far. Adds nothing if the call
    /// lists no tool, or if an up-to-date context tool is present.
    fn add_context_tool(&mut self) {
        let id = self.facade_id.bound_to("context");
        let is_present = self.context.tools().by_id(&id).is_some();
        if self.injection.listed.is_empty() || (is_present && self.injection.add.is_empty()) {
            return;
        }
        let descriptions = self.tool_descriptions(&id);
        let call = self.context.call();
        let about = &call.tool.definition().description;
        let notes = self.revealed.usage_notes.as_deref();
        match context_tool(id, &call.name, about, &descriptions, notes) {
            Ok(tool) => self.injection.add.push(tool),
            Err(error) => tracing::warn!(facade = %call.name, %error, "the context tool of a facade cannot be created"),
        }
    }

    /// Describes the tools that the facade has revealed so far, except its context tool.
    fn tool_descriptions(&self, context_tool: &ToolId) -> Vec<ToolDescription> {
        let tools = self.context.tools();
        let added = &self.injection.add;
        let added_ids: HashSet<_> = added.iter().map(|tool| &tool.definition().id).collect();
        let mut visited_ids = HashSet::from([context_tool]);
        let revealed_ids = self
            .context
            .lineage()
            .children(&self.facade_id)
            .iter()
            .chain(&self.injection.listed);
        let present_ids = revealed_ids.filter(|id| !added_ids.contains(id) && visited_ids.insert(id));
        let present = present_ids
            .filter_map(|id| tools.by_id(id))
            .map(|tool| ToolDescription {
                name: tool.name.clone(),
                definition: ToolDefinition::clone(&tool.definition),
            });
        let names = tools.names_after_adding(added).into_iter();
        let added_tools = names.zip(added).map(|(name, tool)| ToolDescription {
            name,
            definition: tool.definition().clone(),
        });
        present.chain(added_tools).collect()
    }

    /// Returns the facades in which this one is nested, nearest first.
    fn outer_facades(&self) -> impl Iterator<Item = &'a NamedTool> {
        let tools = self.context.tools();
        let ancestors = self.context.lineage().ancestors(&self.facade_id);
        let named = ancestors.filter_map(|id| tools.by_id(id));
        named.filter(|tool| tool.tool.facade().is_some())
    }

    /// Returns whether an id is that of this facade, or of a facade in which this one is nested. The id must be that of an
    /// [`innermost`] tool, and is compared with the ids of the innermost tools of these facades.
    fn is_within(&self, id: &ToolId) -> bool {
        let own_id = &innermost(&self.context.call().tool).definition().id;
        own_id == id
            || self
                .outer_facades()
                .any(|facade| innermost(&facade.tool).definition().id == *id)
    }

    fn withhold(&mut self, name: String, reason: String) {
        self.injection.withheld.push(WithheldTool { name, reason });
    }
}

/// Returns the innermost tool, below all decorators.
fn innermost(tool: &Arc<dyn Tool>) -> &Arc<dyn Tool> {
    decorator_chain(tool).last().unwrap_or(tool)
}

/// Returns the tool of the set that is `tool` or decorates it, or `None` if the set has no such tool.
fn find_present<'a>(tool: &Arc<dyn Tool>, tools: &'a ToolSet) -> Option<&'a NamedTool> {
    let ids = tools.ids_with_identity(&tool.definition().id);
    ids.filter_map(|id| tools.by_id(id))
        .find(|present| is_or_decorates(&present.tool, tool))
}

/// Returns whether `tool` is `inner`, or decorates it.
fn is_or_decorates(tool: &Arc<dyn Tool>, inner: &Arc<dyn Tool>) -> bool {
    decorator_chain(tool).any(|layer| address(layer) == address(inner))
}

/// Returns the address of a tool, which identifies the tool.
fn address(tool: &Arc<dyn Tool>) -> *const () {
    Arc::as_ptr(tool).cast()
}
