//! The tools of a conversation: which can be called, and which the model is shown.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::event::Event;
use super::policy::LoopLimits;
use crate::injection::{Discovery, Entities, Injection};
use crate::model::DeclaredTool;
use crate::tool::{Added, Lookup, Tool, ToolId, ToolName, ToolSet};

/// Callable and declared tools, and the entities behind them.
///
/// Declared tools only grow at their end while a turn lasts, since most providers put tools before messages and any other
/// change costs the cached prompt. The exception is eviction, when more than `tools_max` would be declared.
pub(super) struct Toolbox {
    callable: ToolSet,
    declared: Vec<DeclaredTool>,
    entities: Entities,
    /// Tools that were there from the start and are never evicted.
    fixed: HashSet<ToolName>,
    /// Tools that can be called and are not declared.
    evicted: HashSet<ToolName>,
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
    pub(super) fn new(callable: ToolSet, limits: &LoopLimits) -> Self {
        let fixed = callable.iter().map(|tool| tool.name.clone()).collect();
        Self {
            callable,
            declared: Vec::new(),
            entities: Entities::default(),
            fixed,
            evicted: HashSet::new(),
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

    /// Says what a name stands for.
    pub(super) fn look_up(&self, name: &str) -> Lookup {
        self.callable.look_up(name)
    }

    /// Adds a tool as if it had been there from the start; it is declared from the next turn on.
    pub(super) fn add_fixed(&mut self, tool: Arc<dyn Tool>) -> ToolName {
        let name = self.callable.add(tool).name().clone();
        self.evicted.remove(&name);
        self.fixed.insert(name.clone());
        name
    }

    /// Removes a tool; it is declared to the end of the turn.
    pub(super) fn remove(&mut self, id: &ToolId) -> Option<ToolName> {
        let name = self.callable.remove(id)?;
        self.evicted.remove(&name);
        self.fixed.remove(&name);
        Some(name)
    }

    /// Begins a turn: what was removed is no longer declared, and definitions are taken anew. Returns what is declared.
    pub(super) fn start_turn(&mut self) -> Vec<ToolName> {
        let mut names: Vec<_> = self.declared.drain(..).map(|tool| tool.name).collect();
        let mut there: HashSet<_> = names.iter().cloned().collect();
        for tool in self.callable.iter() {
            if !self.evicted.contains(&tool.name) && there.insert(tool.name.clone()) {
                names.push(tool.name.clone());
            }
        }
        names.retain(|name| self.declare(name).is_some());
        names
    }

    /// Takes what is declared from what can be called now. Only before the model is asked in a turn.
    pub(super) fn declare_anew(&mut self) {
        let callable = &self.callable;
        self.declared
            .retain_mut(|tool| match callable.look_up(tool.name.as_str()) {
                Lookup::Found(now) => {
                    tool.definition = now.definition;
                    true
                }
                Lookup::Removed(_) | Lookup::Unknown(_) => false,
            });
    }

    /// Notes that a tool is called; one that was evicted is declared again.
    pub(super) fn called(&mut self, name: &ToolName) -> Vec<Event> {
        self.touch(name);
        let name = std::slice::from_ref(name);
        let (restored, evicted) = (self.restore(name), self.evict(name));
        restored.into_iter().chain(evicted).collect()
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
            let prompt_bytes = added.new.iter().filter_map(|name| self.declare(name)).sum();
            events.push(Event::ToolsInjected {
                trigger: trigger.clone(),
                names: added.new.clone(),
                prompt_bytes,
            });
        }
        if !added.rebound.is_empty() {
            events.push(Event::ToolsRebound {
                trigger: trigger.clone(),
                names: added.rebound,
            });
        }
        let mut met = added.new;
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
        events.extend(self.evict(&met));
        events.extend(self.warn());
        events
    }

    fn add(&mut self, tools: Vec<Arc<dyn Tool>>) -> Additions {
        let mut additions = Additions::default();
        for tool in tools {
            match self.callable.add(tool) {
                Added::New(name) => additions.new.push(name),
                Added::Rebound(name) if additions.new.contains(&name) => {}
                Added::Rebound(name) => additions.rebound.push(name),
            }
        }
        for name in &additions.new {
            self.touch(name);
        }
        additions
    }

    /// Declares a callable tool, at the end. Returns how many bytes that adds to the prompt, or `None` when there is no
    /// such tool; a tool that is declared already stays as it is.
    fn declare(&mut self, name: &ToolName) -> Option<u64> {
        let Lookup::Found(tool) = self.callable.look_up(name.as_str()) else {
            return None;
        };
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

    fn touch(&mut self, name: &ToolName) {
        self.clock += 1;
        self.used.insert(name.clone(), self.clock);
    }

    /// Declares those of the named tools that were evicted.
    fn restore(&mut self, names: &[ToolName]) -> Option<Event> {
        let mut back = Vec::new();
        for name in names {
            if self.evicted.remove(name) && self.declare(name).is_some() {
                self.touch(name);
                back.push(name.clone());
            }
        }
        (!back.is_empty()).then_some(Event::ToolsRestored { names: back })
    }

    /// Hides as many tools as are too many: those that cannot be called any more, then those not used for longest. Of the
    /// tools that just came in, the last ones go when they alone are too many.
    fn evict(&mut self, fresh: &[ToolName]) -> Option<Event> {
        let excess = self.declared.len().checked_sub(self.tools_max).filter(|n| *n > 0)?;
        let mut candidates: Vec<_> = self
            .declared
            .iter()
            .enumerate()
            .filter(|(_, tool)| !self.fixed.contains(&tool.name))
            .map(|(at, tool)| {
                let callable = matches!(self.callable.look_up(tool.name.as_str()), Lookup::Found(_));
                let is_fresh = fresh.contains(&tool.name);
                let order = if is_fresh {
                    u64::MAX - at as u64
                } else {
                    self.used.get(&tool.name).copied().unwrap_or(0)
                };
                ((callable, is_fresh, order), tool.name.clone())
            })
            .collect();
        candidates.sort();
        let names: Vec<_> = candidates.into_iter().take(excess).map(|(_, name)| name).collect();
        self.declared.retain(|tool| !names.contains(&tool.name));
        for name in &names {
            if matches!(self.callable.look_up(name.as_str()), Lookup::Found(_)) {
                self.evicted.insert(name.clone());
            }
        }
        (!names.is_empty()).then_some(Event::ToolsEvicted { names })
    }

    /// Warns once, each time the number of declared tools grows to where models choose badly.
    fn warn(&mut self) -> Option<Event> {
        let many = self.declared.len() >= self.tools_warn;
        let event = (many && !self.warned).then_some(Event::ToolsMany {
            count: self.declared.len(),
        });
        self.warned = many;
        event
    }

    fn names_of(&self, discovery: &Discovery) -> Vec<ToolName> {
        let tools = discovery.tools.iter().filter_map(|id| self.callable.by_id(id));
        tools.map(|tool| tool.name.clone()).collect()
    }
}

fn discovered(discovery: &Discovery, tools: Vec<ToolName>) -> Event {
    Event::EntityDiscovered {
        kind: discovery.prefix.clone(),
        id: discovery.key.as_ref().map(|key| key.id.clone()),
        binding: discovery.binding,
        tools,
    }
}

#[cfg(test)]
mod tests;
