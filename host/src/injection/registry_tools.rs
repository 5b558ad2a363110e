//! Tools of a registry in a conversation, while packages come, change and go.

use std::sync::{Arc, Mutex, PoisonError};

use super::change::Injection;
use super::context::InjectionContext;
use super::plugin_facades::facades_by_interface;
use super::strategy::InjectionStrategy;
use super::turn::TurnContext;
use crate::plugin::Scope;
use crate::registry::{LiveRegistry, Registry};
use crate::tool::{Tool, ToolDefinition, ToolId, ToolSet};

/// Shows all tools of a registry from the start, and moves the conversation to what is there when a turn begins.
///
/// Within a turn nothing changes: a call ends on the version that it began on. An entity stays with the instance that made it.
pub struct RegistryTools {
    follower: Follower,
    scope: Scope,
    /// Every interface is a facade, not only those of packages whose manifest says so.
    all_facades: bool,
}

impl RegistryTools {
    /// Shows the tools of a registry in a conversation: their resources live in `scope`.
    #[must_use]
    pub fn new(registry: impl Into<LiveRegistry>, scope: Scope) -> Self {
        Self {
            follower: Follower::new(registry.into()),
            scope,
            all_facades: false,
        }
    }

    /// Shows every interface that has several functions as one tool, which unfolds into them.
    #[must_use]
    pub fn as_facades(mut self) -> Self {
        self.all_facades = true;
        self
    }

    /// Returns the tools that are there now.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let registry = self.follower.registry();
        self.shown(&registry, registry.tools(&self.scope))
    }

    /// Puts facades where they are wanted.
    fn shown(&self, registry: &Registry, tools: Vec<Arc<dyn Tool>>) -> Vec<Arc<dyn Tool>> {
        facades_by_interface(tools, |plugin| {
            let manifest = registry.package(plugin).and_then(|package| package.manifest.as_ref());
            let is_wanted = self.all_facades || manifest.is_some_and(|manifest| manifest.facade);
            is_wanted.then(|| {
                manifest
                    .and_then(|manifest| manifest.description.clone())
                    .unwrap_or_default()
            })
        })
    }
}

impl InjectionStrategy for RegistryTools {
    fn evaluate(&self, _context: &InjectionContext<'_>) -> Injection {
        Injection::none()
    }

    fn restore(&self, tool: &ToolId) -> Option<Arc<dyn Tool>> {
        self.follower.registry().tool(tool.as_str(), &self.scope)
    }

    fn begin_turn(&self, turn: &TurnContext<'_>) -> Injection {
        let Some((before, now)) = self.follower.advance() else {
            return Injection::none();
        };
        let mut injection = moved(&before, &now, turn.tools(), &self.scope);
        for plugin in now.plugins() {
            let was_there = before.package(plugin.name()).and_then(|package| package.plugin());
            if was_there.is_some_and(|earlier| Arc::ptr_eq(earlier, plugin)) {
                continue;
            }
            let new = self.shown(&now, now.tools_of(plugin, &self.scope)).into_iter();
            // A facade is bound anew, so that it unfolds into the new version's tools.
            let is_new =
                |tool: &Arc<dyn Tool>| tool.unfolds().is_some() || turn.tools().by_id(&tool.definition().id).is_none();
            injection.add.extend(new.filter(is_new));
        }
        let is_gone = |id: &ToolId| {
            let plugin = now.plugins().find(|plugin| plugin.name() == id.owner());
            plugin.is_none_or(|plugin| {
                let interface = |tool: &ToolDefinition| tool.id.interface_of() == Some(id.as_str());
                !plugin.inspection().tools.iter().any(interface)
            })
        };
        let facades = turn.tools().iter().map(|named| &named.definition.id);
        let facades = facades.filter(|id| before.plugins().any(|plugin| plugin.name() == id.owner()));
        injection
            .remove
            .extend(facades.filter(|id| !id.as_str().contains('#') && is_gone(id)).cloned());
        injection
    }
}

/// The registry as a conversation knows it in this turn.
pub(super) struct Follower {
    live: LiveRegistry,
    known: Mutex<Registry>,
}

impl Follower {
    pub(super) fn new(live: LiveRegistry) -> Self {
        let known = Mutex::new(live.current());
        Self { live, known }
    }

    pub(super) fn registry(&self) -> Registry {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Moves on to what is there now. Returns what was known and what is known, if they differ.
    pub(super) fn advance(&self) -> Option<(Registry, Registry)> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.live.current();
        if known.is_same(&now) {
            return None;
        }
        let before = std::mem::replace(&mut *known, now.clone());
        Some((before, now))
    }
}

/// Puts the new versions of the registry's tools in the place of the old ones, and takes away those that are gone.
pub(super) fn moved(before: &Registry, now: &Registry, tools: &ToolSet, scope: &Scope) -> Injection {
    let mut injection = Injection::none();
    for named in tools.iter() {
        let id = &named.tool.definition().id;
        // Methods of entities are none of these: they live as long as their instance.
        let (Some(_), Some(earlier)) = (before.definition(id.as_str()), before.plugin_of(id.as_str())) else {
            continue;
        };
        if now
            .plugin_of(id.as_str())
            .is_some_and(|plugin| Arc::ptr_eq(plugin, earlier))
        {
            continue;
        }
        match now.tool(id.as_str(), scope) {
            Some(tool) => injection.add.push(tool),
            None => injection.remove.push(id.clone()),
        }
    }
    injection
}
