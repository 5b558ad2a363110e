//! Facades open when they are called.

use std::sync::Arc;

use super::change::{Injection, WithheldTool};
use super::context::InjectionContext;
use super::facade::{Described, context_tool};
use super::gate::CallGate;
use super::rebranded::Rebranded;
use super::strategy::InjectionStrategy;
use super::turn::TurnContext;
use super::view::ConversationView;
use toolwit_core::{NamedTool, RevealedTools, Tool, ToolId, ToolSet, decorator_chain};

/// How many facades may lie within one another.
///
/// Eight levels of ten hold more tools than there are; a facade that makes facades ends here.
pub const FACADE_DEPTH_MAX: usize = 8;

/// Brings in the tools behind a [`Facade`](super::Facade), or behind any tool whose result has
/// [`RevealedTools`](toolwit_core::RevealedTools), when it is called.
///
/// The facade stays and is the guide from then on. Tools that are there already are not added again; those that were made for
/// other arguments are bound anew, under their names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unfolding {
    refolds: bool,
}

impl Unfolding {
    /// Makes the strategy. What was opened stays open.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Folds up, before each turn, the opened tools that the history does not use. They are no longer declared; calling one
    /// brings it back and runs it.
    #[must_use]
    pub fn with_refolding(mut self) -> Self {
        self.refolds = true;
        self
    }
}

impl InjectionStrategy for Unfolding {
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        let call = context.call();
        match &call.result.revealed_tools {
            Some(unfolded) if unfolded.tools.is_empty() => {
                tracing::warn!(facade = %call.name, "a facade has no tools to open");
                Injection::none()
            }
            Some(unfolded) if !call.result.is_error() => Opened::new(context, unfolded).injection(),
            _ => Injection::none(),
        }
    }

    fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let view = turn.view();
        let mut injection = Injection::none();
        if !self.refolds {
            return injection;
        }
        let is_used = |tool: &NamedTool| {
            let calls = view.history().iter().flat_map(|message| message.tool_calls());
            calls.into_iter().any(|call| call.name == tool.name.as_str())
        };
        for tool in view.tools().iter() {
            let brought_by = view.lineage().parent(&tool.definition.id);
            let facade = brought_by.and_then(|id| view.tools().by_id(id));
            if facade.is_some_and(|facade| facade.tool.facade().is_some()) && !is_used(tool) {
                injection.fold.push(tool.definition.id.clone());
            }
        }
        injection
    }

    fn gate(&self, tool: &NamedTool, view: &ConversationView<'_>) -> CallGate {
        let Some((facade, inner)) = exclusive(view) else {
            return CallGate::Ungated;
        };
        let id = &tool.definition.id;
        let is_the_hosts = id.is_host();
        if is_the_hosts || *id == facade.definition.id || inner.iter().any(|inner| inner.definition.id == *id) {
            return CallGate::Ungated;
        }
        let names: Vec<_> = inner.iter().map(|inner| format!("`{}`", inner.name)).collect();
        CallGate::Locked(format!(
            "`{}` is set aside: `{}` is open, and until this turn ends only its tools can be called: {}",
            tool.name,
            facade.name,
            names.join(", ")
        ))
    }
}

/// Finds the facade that has the turn to itself, with the tools that can be called.
fn exclusive<'a>(view: &ConversationView<'a>) -> Option<(&'a NamedTool, Vec<&'a NamedTool>)> {
    let of_turn = view.calls().succeeded().rev().filter(|call| call.turn == view.turn());
    let called = of_turn.filter_map(|call| view.tools().by_id(&call.tool));
    for facade in called {
        let Some(behind) = facade.tool.facade().filter(|behind| behind.is_exclusive()) else {
            continue;
        };
        let id = &facade.definition.id;
        let is_inner = |tool: &&NamedTool| {
            let folded = behind.folded().iter().any(|folded| is_same(&tool.tool, folded));
            folded
                || view
                    .lineage()
                    .ancestors(&tool.definition.id)
                    .any(|ancestor| ancestor == id)
        };
        let inner: Vec<_> = view.tools().iter().filter(is_inner).collect();
        // One that opened nothing must not leave the model without tools.
        if !inner.is_empty() {
            return Some((facade, inner));
        }
    }
    None
}

/// A facade that was called, while its tools are gone through.
struct Opened<'a> {
    context: &'a InjectionContext<'a>,
    unfolded: &'a RevealedTools,
    facade: ToolId,
    /// Whether the facade was called like this just before.
    is_repeated: bool,
    injection: Injection,
}

impl<'a> Opened<'a> {
    fn new(context: &'a InjectionContext<'a>, unfolded: &'a RevealedTools) -> Self {
        let call = context.call();
        let facade = call.tool.definition().id.clone();
        let mut before = context.calls().succeeded().rev().filter(|past| past.tool == facade);
        Self {
            is_repeated: before.next().is_some_and(|past| past.arguments == call.arguments),
            context,
            unfolded,
            facade,
            injection: Injection::none(),
        }
    }

    fn injection(mut self) -> Injection {
        if self.ancestors().count() >= FACADE_DEPTH_MAX {
            let reason = format!("it lies in {FACADE_DEPTH_MAX} facades already; none is opened below");
            self.withhold(self.context.call().name.as_str().to_owned(), reason);
            return self.injection;
        }
        for tool in &self.unfolded.tools {
            self.take(tool);
        }
        self.bring_context();
        self.injection
    }

    /// Lists a tool, and adds it unless this very tool is there.
    fn take(&mut self, tool: &Arc<dyn Tool>) {
        if let Some(there) = self.context.tools().iter().find(|there| is_same(&there.tool, tool)) {
            self.injection.listed.push(there.definition.id.clone());
            return;
        }
        let name = tool.definition().name();
        if tool.facade().is_some() && self.is_within(&origin(tool).definition().id) {
            self.withhold(name.to_owned(), "it would open inside itself".to_owned());
            return;
        }
        let tool = self.scoped(tool);
        let id = tool.definition().id.clone();
        let is_there = self.context.tools().by_id(&id).is_some();
        if !(is_there && self.is_repeated) {
            self.injection.add.push(tool);
        }
        self.injection.listed.push(id);
    }

    /// Gives a native tool an identity within its facade, since any two may have tools of the same name; a plugin's or the
    /// host's tool is the same wherever it is shown.
    fn scoped(&self, tool: &Arc<dyn Tool>) -> Arc<dyn Tool> {
        let definition = tool.definition();
        if !definition.id.is_native() {
            return tool.clone();
        }
        let facade = &self.context.call().name;
        let mut names = definition.names.clone();
        names.extend(definition.names.first().map(|name| format!("{facade}_{name}")));
        let id = definition.id.within(&self.facade);
        Arc::new(Rebranded::new(id, tool.clone()).named(names))
    }

    /// Adds `<facade>_context`, which tells of all tools that the facade has opened so far.
    fn bring_context(&mut self) {
        let id = self.facade.bound_to("context");
        let is_there = self.context.tools().by_id(&id).is_some();
        if self.injection.listed.is_empty() || (is_there && self.injection.add.is_empty()) {
            return;
        }
        let mut after: ToolSet = self.context.tools().clone();
        for tool in &self.injection.add {
            after.add(tool.clone());
        }
        let listed = &self.injection.listed;
        let lineage = self.context.lineage();
        let is_inner = |tool: &&NamedTool| {
            let inner = &tool.definition.id;
            *inner != id && (listed.contains(inner) || lineage.parent(inner) == Some(&self.facade))
        };
        let described: Vec<_> = after
            .iter()
            .filter(is_inner)
            .map(|tool| Described {
                name: tool.name.clone(),
                definition: tool.tool.definition().clone(),
            })
            .collect();
        let call = self.context.call();
        let about = &call.tool.definition().description;
        let notes = self.unfolded.usage_notes.as_deref();
        match context_tool(id, &call.name, about, &described, notes) {
            Ok(tool) => self.injection.add.push(tool),
            Err(error) => tracing::warn!(facade = %call.name, %error, "a facade has no context tool"),
        }
    }

    /// The facades that led to this one, the nearest first.
    fn ancestors(&self) -> impl Iterator<Item = &'a NamedTool> {
        let tools = self.context.tools();
        let ancestors = self.context.lineage().ancestors(&self.facade);
        let named = ancestors.filter_map(|id| tools.by_id(id));
        named.filter(|tool| tool.tool.facade().is_some())
    }

    /// Tells whether this is the facade itself or one that it lies in.
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

/// The tool under all its decorators.
fn origin(tool: &Arc<dyn Tool>) -> &Arc<dyn Tool> {
    decorator_chain(tool).last().unwrap_or(tool)
}

/// Tells whether a tool is another one, perhaps decorated.
fn is_same(tool: &Arc<dyn Tool>, other: &Arc<dyn Tool>) -> bool {
    decorator_chain(tool).any(|layer| std::ptr::addr_eq(Arc::as_ptr(layer), Arc::as_ptr(other)))
}
