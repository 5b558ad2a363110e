//! The tools of a conversation: which can be called, and which the model is shown.

mod hiding;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::event::Event;
use super::gateway::DESCRIBED;
use super::policy::LoopLimits;
use crate::injection::{CallLog, ConversationView, DiscoveredEntity, Entities, Injection, Lineage};
use crate::model::{DeclaredTool, Delivery};
use toolwit_core::{AddOutcome, Message, NamedTool, Tool, ToolDefinition, ToolId, ToolLookup, ToolName, ToolSet};

/// Callable and declared tools, and the entities behind them.
///
/// Declared tools only grow at their end while a turn lasts, since most providers put tools before messages and any other
/// change costs the cached prompt. The exception is eviction, when more than `tools_max` would be declared.
///
/// Behind a gateway the declared tools never change: those that come in are described in the result that brings them.
#[derive(Clone)]
pub(super) struct Toolbox {
    callable: ToolSet,
    declared: Vec<DeclaredTool>,
    /// Tools that came in behind a gateway, in order.
    described: Vec<ToolName>,
    delivery: Delivery,
    entities: Entities,
    lineage: Lineage,
    pub(super) calls: CallLog,
    /// Tools that were there from the start and are never hidden.
    fixed: HashSet<ToolName>,
    /// Tools that can be called and that the model is not shown.
    hidden: HashSet<ToolName>,
    /// When each tool was last added or called, on a clock that counts those moments.
    used: HashMap<ToolName, u64>,
    clock: u64,
    warned: bool,
    tools_max: usize,
    tools_warn: usize,
}

/// What was added, by its effect.
#[derive(Default)]
struct Additions {
    new: Vec<ToolName>,
    rebound: Vec<ToolName>,
}

impl Toolbox {
    pub(super) fn new(callable: ToolSet, delivery: Delivery, limits: &LoopLimits) -> Self {
        let fixed = callable.iter().map(|tool| tool.name.clone()).collect();
        Self {
            callable,
            declared: Vec::new(),
            described: Vec::new(),
            delivery,
            entities: Entities::default(),
            lineage: Lineage::default(),
            calls: CallLog::default(),
            fixed,
            hidden: HashSet::new(),
            used: HashMap::new(),
            clock: 0,
            warned: false,
            tools_max: limits.tools_max,
            tools_warn: limits.tools_warn,
        }
    }

    pub(super) fn callable(&self) -> &ToolSet {
        &self.callable
    }

    pub(super) fn declared(&self) -> &[DeclaredTool] {
        &self.declared
    }

    pub(super) fn declared_names(&self) -> Vec<ToolName> {
        self.declared.iter().map(|tool| tool.name.clone()).collect()
    }

    pub(super) fn entities(&self) -> &Entities {
        &self.entities
    }

    /// Takes a tool back that came in when this conversation was in another process.
    pub(super) fn adopt(
        &mut self,
        trigger: &ToolName,
        name: ToolName,
        definition: ToolDefinition,
        tool: Arc<dyn Tool>,
        is_lost: bool,
    ) {
        let id = definition.id.clone();
        // What is there already is the application's own, which has it from the start now.
        if self.callable.adopt(name.clone(), definition, tool) && is_lost {
            self.entities.lose(id);
        }
        self.touch(&name);
        self.show(&name);
        self.remember_origin(&[name], trigger);
    }

    /// Lets a tool that is there run other code.
    pub(super) fn bind(&mut self, tool: Arc<dyn Tool>) {
        self.entities.recover(&tool.definition().id);
        self.callable.add(tool);
    }

    /// Removes tools by name.
    pub(super) fn forget(&mut self, names: &[ToolName]) {
        for tool in names.iter().filter_map(|name| self.named(name)).collect::<Vec<_>>() {
            self.remove(&tool.definition.id);
        }
    }

    /// Describes the tools that came in behind a gateway, for the model to read; `None` where there is nothing to tell.
    pub(super) fn described(&self, events: &[Event]) -> Option<String> {
        if self.delivery != Delivery::Gateway {
            return None;
        }
        let names = events.iter().flat_map(|event| match event {
            Event::ToolsInjected { names, .. } | Event::ToolsRestored { names } => names.as_slice(),
            _ => &[],
        });
        let lines: String = names
            .filter_map(|name| self.named(name))
            .map(|tool| described(&tool))
            .collect();
        (!lines.is_empty()).then(|| format!("\n\n{DESCRIBED}\n{lines}"))
    }

    pub(super) fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// Shows strategies the conversation in which something was just said.
    pub(super) fn view<'s>(&'s self, history: &'s [Message]) -> ConversationView<'s> {
        ConversationView::new(history, &self.callable)
            .with_entities(&self.entities)
            .with_lineage(&self.lineage)
            .with_calls(&self.calls)
    }

    /// Says what a name stands for.
    pub(super) fn look_up(&self, name: &str) -> ToolLookup {
        self.callable.look_up(name)
    }

    /// Adds a tool as if it had been there from the start; it is declared from the next turn on.
    pub(super) fn add_fixed(&mut self, tool: Arc<dyn Tool>) -> ToolName {
        let name = self.callable.add(tool).name().clone();
        self.hidden.remove(&name);
        self.fixed.insert(name.clone());
        name
    }

    /// Removes a tool; it is declared to the end of the turn.
    pub(super) fn remove(&mut self, id: &ToolId) -> Option<ToolName> {
        let name = self.callable.remove(id)?;
        self.hidden.remove(&name);
        self.fixed.remove(&name);
        Some(name)
    }

    /// Begins a turn: what was removed is no longer declared, and definitions are taken anew. Returns what is shown.
    pub(super) fn start_turn(&mut self) -> Vec<ToolName> {
        let mut names: Vec<_> = self.declared.drain(..).map(|tool| tool.name).collect();
        names.append(&mut self.described);
        let mut there: HashSet<_> = names.iter().cloned().collect();
        for tool in self.callable.iter() {
            if !self.hidden.contains(&tool.name) && there.insert(tool.name.clone()) {
                names.push(tool.name.clone());
            }
        }
        names.retain(|name| self.show(name).is_some());
        names
    }

    /// Applies what a strategy wants at the beginning of a turn, when tools may be folded up too.
    pub(super) fn begin(&mut self, injection: Injection, trigger: &ToolName) -> Vec<Event> {
        let folded = self.fold(&injection.fold);
        folded.into_iter().chain(self.apply(injection, trigger)).collect()
    }

    /// Takes what is declared from what can be called now. Only before the model is asked in a turn.
    pub(super) fn declare_anew(&mut self) {
        let callable = &self.callable;
        self.declared
            .retain_mut(|tool| match callable.look_up(tool.name.as_str()) {
                ToolLookup::Found(now) => {
                    tool.definition = now.definition;
                    true
                }
                ToolLookup::Removed(_) | ToolLookup::Unknown(_) => false,
            });
    }

    /// Notes that a tool is called; one that was hidden is declared again.
    pub(super) fn called(&mut self, name: &ToolName) -> Vec<Event> {
        self.touch(name);
        let name = std::slice::from_ref(name);
        let (restored, hidden) = (self.restore(name), self.evict(name));
        restored.into_iter().chain(hidden).collect()
    }

    /// Applies what a strategy wants after the result of `trigger`: removals first, then additions.
    pub(super) fn apply(&mut self, injection: Injection, trigger: &ToolName) -> Vec<Event> {
        let mut events = Vec::new();
        let removed: Vec<_> = injection.remove.iter().filter_map(|id| self.remove(id)).collect();
        let added = self.add(injection.add);
        if !removed.is_empty() {
            events.push(Event::ToolsRemoved {
                trigger: trigger.clone(),
                names: removed,
            });
        }
        if !added.new.is_empty() {
            let prompt_bytes = added.new.iter().filter_map(|name| self.show(name)).sum();
            self.remember_origin(&added.new, trigger);
            events.push(Event::ToolsInjected {
                trigger: trigger.clone(),
                names: added.new.clone(),
                definitions: self.definitions(&added.new),
                prompt_bytes,
            });
        }
        if !added.rebound.is_empty() {
            let rebound = added.rebound.iter().filter_map(|name| self.named(name));
            let ids: Vec<_> = rebound.map(|tool| tool.definition.id.clone()).collect();
            ids.iter().for_each(|id| self.entities.recover(id));
            events.push(Event::ToolsRebound {
                trigger: trigger.clone(),
                names: added.rebound,
            });
        }
        let mut met = added.new;
        let listed = injection.listed.iter().filter_map(|id| self.callable.by_id(id));
        let listed: Vec<_> = listed.map(|tool| tool.name.clone()).collect();
        events.extend(self.restore(&listed));
        met.extend(listed);
        for discovery in &injection.discovered {
            self.entities.record(discovery);
            let names = self.names_of(discovery);
            events.push(discovered(discovery, names.clone()));
            events.extend(self.restore(&names));
            met.extend(names);
        }
        events.extend(injection.rejected.into_iter().map(|rejected| Event::ProviderInvalid {
            kind: rejected.prefix,
            reason: rejected.reason,
        }));
        events.extend(injection.withheld.into_iter().map(|withheld| Event::ToolWithheld {
            trigger: trigger.clone(),
            name: withheld.name,
            reason: withheld.reason,
        }));
        events.extend(self.evict(&met));
        events.extend(self.warn());
        events
    }

    fn add(&mut self, tools: Vec<Arc<dyn Tool>>) -> Additions {
        let mut additions = Additions::default();
        for tool in tools {
            match self.callable.add(tool) {
                AddOutcome::New(name) => additions.new.push(name),
                AddOutcome::Rebound(name) if additions.new.contains(&name) => {}
                AddOutcome::Rebound(name) => additions.rebound.push(name),
            }
        }
        for name in &additions.new {
            self.touch(name);
        }
        additions
    }

    fn named(&self, name: &ToolName) -> Option<NamedTool> {
        match self.callable.look_up(name.as_str()) {
            ToolLookup::Found(tool) => Some(tool),
            _ => None,
        }
    }

    fn definitions(&self, names: &[ToolName]) -> Vec<ToolDefinition> {
        let tools = names.iter().filter_map(|name| self.named(name));
        tools.map(|tool| ToolDefinition::clone(&tool.definition)).collect()
    }

    fn remember_origin(&mut self, names: &[ToolName], trigger: &ToolName) {
        let id_of = |name: &ToolName| self.named(name).map(|tool| tool.definition.id.clone());
        let Some(brought_by) = id_of(trigger) else { return };
        let tools: Vec<_> = names.iter().filter_map(id_of).collect();
        for tool in tools {
            self.lineage.record(tool, brought_by.clone());
        }
    }

    /// Shows a callable tool to the model, after those that it was shown. Returns how many bytes that adds to the prompt, or
    /// `None` when there is no such tool; a tool that is shown already stays as it is.
    fn show(&mut self, name: &ToolName) -> Option<u64> {
        let tool = self.named(name)?;
        if self.delivery == Delivery::Gateway && !self.fixed.contains(name) {
            if self.described.contains(name) {
                return Some(0);
            }
            self.described.push(name.clone());
            return u64::try_from(described(&tool).len()).ok();
        }
        if self.is_declared(name) {
            return Some(0);
        }
        let definition = tool.definition;
        let schema_bytes = definition.input_schema.to_string().len();
        let bytes = name.as_str().len() + definition.description.len() + schema_bytes;
        self.declared.push(DeclaredTool {
            name: name.clone(),
            definition,
        });
        u64::try_from(bytes).ok()
    }

    fn is_declared(&self, name: &ToolName) -> bool {
        self.declared.iter().any(|tool| tool.name == *name)
    }

    pub(super) fn touch(&mut self, name: &ToolName) {
        self.clock += 1;
        self.used.insert(name.clone(), self.clock);
    }

    fn names_of(&self, discovery: &DiscoveredEntity) -> Vec<ToolName> {
        let tools = discovery.tools.iter().filter_map(|id| self.callable.by_id(id));
        tools.map(|tool| tool.name.clone()).collect()
    }
}

/// Writes a line about a tool, for a model that is not sent its definition.
pub(super) fn described(tool: &NamedTool) -> String {
    let definition = &tool.definition;
    format!(
        "- `{}`: {} Arguments: {}\n",
        tool.name, definition.description, definition.input_schema
    )
}

fn discovered(discovery: &DiscoveredEntity, tools: Vec<ToolName>) -> Event {
    Event::EntityDiscovered {
        kind: discovery.prefix.clone(),
        id: discovery.key.as_ref().map(|key| key.id.clone()),
        binding: discovery.binding,
        tools,
    }
}

#[cfg(test)]
mod tests;
