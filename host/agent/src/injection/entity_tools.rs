//! Objects in a result bring their methods along.

use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexMap;

use super::change::{DiscoveredEntity, Injection, RejectedProvider};
use super::context::InjectionContext;
use super::entities::{EntityBinding, EntityIdentity};
use super::rebranded::Rebranded;
use super::shared::ENTITIES_PER_RESULT_MAX;
use super::strategy::InjectionStrategy;
use toolwit_core::{Rebinding, Tool, ToolId, ToolProvider};

/// How many entities may lie between a tool that was there from the start and one that a result brings.
///
/// Customer, order, line item is three; a chain of eight is a loop of objects that make each other.
pub const ENTITY_DEPTH_MAX: u32 = 8;

/// The longest id of an entity, in bytes. It is repeated to the model in each result and goes into tool names.
pub const ENTITY_ID_BYTES_MAX: usize = 256;

/// Adds the methods of every [`ToolProvider`] that a result holds, bound to the live object. Of a type of which one result holds
/// more than [`ENTITIES_PER_RESULT_MAX`], all share one set of methods, which take the id.
///
/// The same entity again adds nothing: names and definitions stay, and its [`Rebinding`] says which instance runs. Methods
/// that return objects nest by the same rule, to [`ENTITY_DEPTH_MAX`]. An object without tools is left alone; one with an
/// empty or over-long id is rejected with the reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntityTools;

impl InjectionStrategy for EntityTools {
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        let mut result = Evaluation {
            context,
            injection: Injection::none(),
            keys: HashSet::new(),
            tools: HashSet::new(),
        };
        let providers = &context.call().result.providers;
        for crowd in crowds(providers) {
            match crowd.as_slice() {
                [] => {}
                [one] => result.take(one.as_ref()),
                many => result.share(many),
            }
        }
        result.injection
    }
}

/// One result while its objects are gone through.
struct Evaluation<'a> {
    context: &'a InjectionContext<'a>,
    injection: Injection,
    keys: HashSet<EntityIdentity>,
    tools: HashSet<ToolId>,
}

impl Evaluation<'_> {
    fn take(&mut self, provider: &dyn ToolProvider) {
        let key = provider
            .instance_id()
            .map(|id| EntityIdentity::new(provider.namespace(), provider.prefix(), id));
        let depth = self.depth_of(key.as_ref(), provider);
        if let Some(reason) = fault(key.as_ref(), depth) {
            self.injection.rejected.push(RejectedProvider {
                prefix: provider.prefix().to_owned(),
                reason,
            });
            return;
        }
        let methods = provider.tools();
        if methods.is_empty() {
            return;
        }
        let tools: Vec<_> = methods
            .into_iter()
            .map(|method| self.owned_by(key.as_ref(), method))
            .collect();
        let binding = self.binding(key.as_ref(), &tools, provider.rebinding());
        let ids: Vec<_> = tools.iter().map(|tool| tool.definition().id.clone()).collect();
        for tool in tools {
            if binding == EntityBinding::Rebound || !self.is_there(&tool.definition().id) {
                self.injection.add.push(tool);
            }
        }
        self.tools.extend(ids.iter().cloned());
        self.keys.extend(key.clone());
        self.injection.discovered.push(DiscoveredEntity {
            key,
            prefix: provider.prefix().to_owned(),
            tools: ids,
            depth,
            binding,
            shared: None,
            namespace: provider.namespace().to_owned(),
        });
    }

    /// Gives many entities of a type one set of tools, which take the id of the one to act on.
    fn share(&mut self, entities: &[Arc<dyn ToolProvider>]) {
        let (fit, unfit): (Vec<_>, Vec<_>) = entities.iter().cloned().partition(|entity| {
            let key = entity.instance_id().map(|id| EntityIdentity::new("", "", id));
            fault(key.as_ref(), self.depth_of(None, entity.as_ref())).is_none()
        });
        // Those that cannot be told apart or lie too deep are refused one by one.
        unfit.iter().for_each(|entity| self.take(entity.as_ref()));
        let Some(first) = fit.first() else { return };
        let known = self.context.entities().shared(first.namespace(), first.prefix());
        let shared = known.cloned().unwrap_or_default();
        shared.extend(&fit);
        let tools = shared.tools(first.as_ref());
        let ids: Vec<_> = tools.iter().map(|tool| tool.definition().id.clone()).collect();
        let is_lost = ids.iter().any(|id| self.context.entities().is_lost(id));
        if known.is_none() || is_lost {
            self.injection.add.extend(tools);
        }
        self.injection.discovered.push(DiscoveredEntity {
            key: None,
            prefix: first.prefix().to_owned(),
            tools: ids,
            depth: self.depth_of(None, first.as_ref()),
            binding: if known.is_some() {
                EntityBinding::Kept
            } else {
                EntityBinding::New
            },
            shared: Some(shared),
            namespace: first.namespace().to_owned(),
        });
    }

    /// An entity that was met before lies where it was met; a new one lies below the entity whose method returned it.
    fn depth_of(&self, key: Option<&EntityIdentity>, provider: &dyn ToolProvider) -> u32 {
        let entities = self.context.entities();
        let parent = &self.context.call().tool.definition().id;
        key.and_then(|key| entities.depth_of(key))
            .unwrap_or_else(|| provider.depth().max(entities.depth_of_tool(parent).saturating_add(1)))
    }

    fn binding(&self, key: Option<&EntityIdentity>, methods: &[Arc<dyn Tool>], rebinding: Rebinding) -> EntityBinding {
        let known = match key {
            Some(key) => self.context.entities().tools_of(key).is_some() || self.keys.contains(key),
            None => methods.iter().all(|method| self.is_there(&method.definition().id)),
        };
        let entities = self.context.entities();
        let is_lost = methods.iter().any(|method| entities.is_lost(&method.definition().id));
        match (known || is_lost, rebinding) {
            _ if is_lost => EntityBinding::Rebound,
            (false, _) => EntityBinding::New,
            (true, Rebinding::Keep) => EntityBinding::Kept,
            (true, Rebinding::Latest) => EntityBinding::Rebound,
        }
    }

    fn is_there(&self, id: &ToolId) -> bool {
        self.context.tools().by_id(id).is_some() || self.tools.contains(id)
    }

    /// Gives a method an identity of its own when the one it brings belongs to somebody else, so that no entity loses its
    /// tools to a type that names them carelessly.
    fn owned_by(&self, key: Option<&EntityIdentity>, method: Arc<dyn Tool>) -> Arc<dyn Tool> {
        let Some(key) = key else { return method };
        let id = &method.definition().id;
        let own = self.context.entities().tools_of(key).unwrap_or_default();
        let discovered_here = self.injection.discovered.iter().find(|d| d.key.as_ref() == Some(key));
        let is_own = own.contains(id) || discovered_here.is_some_and(|d| d.tools.contains(id));
        if is_own || !self.is_there(id) || self.context.entities().is_lost(id) {
            return method;
        }
        let owner = format!("{}/{}/{}", key.namespace, key.prefix, key.id);
        Arc::new(Rebranded::new(id.bound_to(&owner), method))
    }
}

/// Groups the entities of a result: each by itself, but those of a type of which there are many together.
fn crowds(providers: &[Arc<dyn ToolProvider>]) -> Vec<Vec<Arc<dyn ToolProvider>>> {
    let type_of = |entity: &Arc<dyn ToolProvider>| (entity.namespace().to_owned(), entity.prefix().to_owned());
    let mut of_type: IndexMap<_, Vec<_>> = IndexMap::new();
    for provider in providers.iter().filter(|provider| provider.instance_id().is_some()) {
        of_type.entry(type_of(provider)).or_default().push(provider.clone());
    }
    of_type.retain(|_, entities| entities.len() > ENTITIES_PER_RESULT_MAX);
    let mut crowds = Vec::new();
    for provider in providers {
        let is_one_of_many = provider.instance_id().is_some() && of_type.contains_key(&type_of(provider));
        if !is_one_of_many {
            crowds.push(vec![provider.clone()]);
        }
    }
    crowds.extend(of_type.into_values());
    crowds
}

/// Says what keeps a provider from becoming tools.
fn fault(key: Option<&EntityIdentity>, depth: u32) -> Option<String> {
    match key.map(|key| key.id.len()) {
        Some(0) => Some("its id is empty".to_owned()),
        Some(bytes) if bytes > ENTITY_ID_BYTES_MAX => Some(format!(
            "its id has {bytes} bytes; at most {ENTITY_ID_BYTES_MAX} are taken"
        )),
        _ if depth > ENTITY_DEPTH_MAX => Some(format!(
            "it is {depth} entities away from the first tool; at most {ENTITY_DEPTH_MAX} are followed"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
