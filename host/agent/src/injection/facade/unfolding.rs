//! The strategy that injects the tools of facades.

use std::sync::Arc;

use super::context_tool::{RevealedTool, context_tool};
use crate::injection::reidentified::ReidentifiedTool;
use crate::injection::strategy::{CallGate, Injection, InjectionStrategy, WithheldTool};
use crate::injection::view::{ConversationView, InjectionContext, TurnContext};
use toolwit_core::{NamedTool, RevealedTools, Tool, ToolId, ToolSet, decorator_chain};

/// Maximum nesting depth of facades.
///
/// Eight levels of ten tools each exceed any real catalogue. The limit stops facades that create facades recursively.
pub const FACADE_DEPTH_MAX: usize = 8;

/// Injects the inner tools of a [`Facade`](super::Facade), or of any tool whose result has
/// [`RevealedTools`](toolwit_core::RevealedTools), when it is called.
///
/// The facade stays declared. Inner tools that are already present are not added again. Tools that were created for other
/// arguments are rebound under the same names.
///
/// The strategy is stateless: it derives the open facades from the call log and the lineage.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unfolding {
    refolding: bool,
}

impl Unfolding {
    /// Creates the strategy. Revealed tools stay declared.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Folds unused tools: from the start of each turn, a revealed tool that was never called in the history is no longer
    /// declared. A call of a folded tool still runs, and declares the tool again.
    #[must_use]
    pub fn with_refolding(mut self) -> Self {
        self.refolding = true;
        self
    }
}

impl InjectionStrategy for Unfolding {
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        let call = context.call();
        match &call.result.revealed_tools {
            Some(revealed) if revealed.tools.is_empty() => {
                tracing::warn!(facade = %call.name, "a facade has no inner tools");
                Injection::none()
            }
            Some(revealed) if !call.result.is_error() => FacadeOpening::new(context, revealed).injection(),
            _ => Injection::none(),
        }
    }

    fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let view = turn.view();
        let mut injection = Injection::none();
        if !self.refolding {
            return injection;
        }
        let is_used = |tool: &NamedTool| {
            let calls = view.history().iter().flat_map(|message| message.tool_calls());
            calls.into_iter().any(|call| call.name == tool.name.as_str())
        };
        for tool in view.tools().iter() {
            let parent = view.lineage().parent(&tool.definition.id);
            let facade = parent.and_then(|id| view.tools().by_id(id));
            if facade.is_some_and(|facade| facade.tool.facade().is_some()) && !is_used(tool) {
                injection.fold.push(tool.definition.id.clone());
            }
        }
        injection
    }

    fn gate(&self, tool: &NamedTool, view: &ConversationView<'_>) -> CallGate {
        let Some((facade, inner)) = open_exclusive_facade(view) else {
            return CallGate::Ungated;
        };
        let id = &tool.definition.id;
        if id.is_host() || *id == facade.definition.id || inner.iter().any(|inner| inner.definition.id == *id) {
            return CallGate::Ungated;
        }
        let names: Vec<_> = inner.iter().map(|inner| format!("`{}`", inner.name)).collect();
        CallGate::Locked(format!(
            "`{}` cannot be called now: `{}` is open, and until this turn ends only its tools can be called: {}",
            tool.name,
            facade.name,
            names.join(", ")
        ))
    }
}

/// Returns the open exclusive facade of this turn and its inner tools, or `None` if no exclusive facade is open.
fn open_exclusive_facade<'a>(view: &ConversationView<'a>) -> Option<(&'a NamedTool, Vec<&'a NamedTool>)> {
    let calls_of_turn = view.calls().succeeded().rev().filter(|call| call.turn == view.turn());
    let called = calls_of_turn.filter_map(|call| view.tools().by_id(&call.tool));
    for facade in called {
        let Some(contents) = facade.tool.facade().filter(|contents| contents.is_exclusive()) else {
            continue;
        };
        let id = &facade.definition.id;
        let is_inner = |tool: &&NamedTool| {
            let is_folded = contents.folded().iter().any(|folded| is_same(&tool.tool, folded));
            is_folded
                || view
                    .lineage()
                    .ancestors(&tool.definition.id)
                    .any(|ancestor| ancestor == id)
        };
        let inner: Vec<_> = view.tools().iter().filter(is_inner).collect();
        // A facade without inner tools must not leave the model without callable tools.
        if !inner.is_empty() {
            return Some((facade, inner));
        }
    }
    None
}

/// The evaluation of one facade call.
struct FacadeOpening<'a> {
    context: &'a InjectionContext<'a>,
    revealed: &'a RevealedTools,
    facade: ToolId,
    /// Whether the previous call of the facade had the same arguments.
    is_repeated: bool,
    injection: Injection,
}

impl<'a> FacadeOpening<'a> {
    fn new(context: &'a InjectionContext<'a>, revealed: &'a RevealedTools) -> Self {
        let call = context.call();
        let facade = call.tool.definition().id.clone();
        let mut earlier_calls = context
            .calls()
            .succeeded()
            .rev()
            .filter(|earlier| earlier.tool == facade);
        Self {
            is_repeated: earlier_calls
                .next()
                .is_some_and(|earlier| earlier.arguments == call.arguments),
            context,
            revealed,
            facade,
            injection: Injection::none(),
        }
    }

    fn injection(mut self) -> Injection {
        if self.ancestors().count() >= FACADE_DEPTH_MAX {
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

    /// Lists a tool, and adds it unless it is already present.
    fn reveal(&mut self, tool: &Arc<dyn Tool>) {
        if let Some(present) = self.context.tools().iter().find(|present| is_same(&present.tool, tool)) {
            self.injection.listed.push(present.definition.id.clone());
            return;
        }
        let name = tool.definition().name();
        if tool.facade().is_some() && self.is_within(&origin(tool).definition().id) {
            self.withhold(name.to_owned(), "it would be nested in itself".to_owned());
            return;
        }
        let tool = self.with_scoped_id(tool);
        let id = tool.definition().id.clone();
        let is_present = self.context.tools().by_id(&id).is_some();
        if !(is_present && self.is_repeated) {
            self.injection.add.push(tool);
        }
        self.injection.listed.push(id);
    }

    /// Scopes the id of a native tool to its facade, since two facades may have native tools of the same name. Plugin tools
    /// and host tools keep their ids, which are unique.
    fn with_scoped_id(&self, tool: &Arc<dyn Tool>) -> Arc<dyn Tool> {
        let definition = tool.definition();
        if !definition.id.is_native() {
            return tool.clone();
        }
        let facade = &self.context.call().name;
        let mut names = definition.names.clone();
        names.extend(definition.names.first().map(|name| format!("{facade}_{name}")));
        let id = definition.id.within(&self.facade);
        Arc::new(ReidentifiedTool::new(id, tool.clone()).with_names(names))
    }

    /// Adds `<facade>_context`, which describes all tools that the facade has revealed so far.
    fn add_context_tool(&mut self) {
        let id = self.facade.bound_to("context");
        let is_present = self.context.tools().by_id(&id).is_some();
        if self.injection.listed.is_empty() || (is_present && self.injection.add.is_empty()) {
            return;
        }
        let mut after: ToolSet = self.context.tools().clone();
        for tool in &self.injection.add {
            after.add(tool.clone());
        }
        let listed = &self.injection.listed;
        let lineage = self.context.lineage();
        let is_inner = |tool: &&NamedTool| {
            let tool_id = &tool.definition.id;
            *tool_id != id && (listed.contains(tool_id) || lineage.parent(tool_id) == Some(&self.facade))
        };
        let described: Vec<_> = after
            .iter()
            .filter(is_inner)
            .map(|tool| RevealedTool {
                name: tool.name.clone(),
                definition: tool.tool.definition().clone(),
            })
            .collect();
        let call = self.context.call();
        let about = &call.tool.definition().description;
        let notes = self.revealed.usage_notes.as_deref();
        match context_tool(id, &call.name, about, &described, notes) {
            Ok(tool) => self.injection.add.push(tool),
            Err(error) => tracing::warn!(facade = %call.name, %error, "the context tool of a facade cannot be created"),
        }
    }

    /// Returns the facades in which this one is nested, nearest first.
    fn ancestors(&self) -> impl Iterator<Item = &'a NamedTool> {
        let tools = self.context.tools();
        let ancestors = self.context.lineage().ancestors(&self.facade);
        let named = ancestors.filter_map(|id| tools.by_id(id));
        named.filter(|tool| tool.tool.facade().is_some())
    }

    /// Returns whether `id` is this facade or a facade in which it is nested.
    fn is_within(&self, id: &ToolId) -> bool {
        let own = &origin(&self.context.call().tool).definition().id;
        own == id
            || self
                .ancestors()
                .any(|ancestor| origin(&ancestor.tool).definition().id == *id)
    }

    fn withhold(&mut self, name: String, reason: String) {
        self.injection.withheld.push(WithheldTool { name, reason });
    }
}

/// Returns the innermost tool, below all decorators.
fn origin(tool: &Arc<dyn Tool>) -> &Arc<dyn Tool> {
    decorator_chain(tool).last().unwrap_or(tool)
}

/// Returns whether `tool` is `other`, possibly decorated.
fn is_same(tool: &Arc<dyn Tool>, other: &Arc<dyn Tool>) -> bool {
    decorator_chain(tool).any(|layer| std::ptr::addr_eq(Arc::as_ptr(layer), Arc::as_ptr(other)))
}
