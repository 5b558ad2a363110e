//! The strategy that offers the methods of the current object of a type.

mod current_object;

use std::any::Any;
use std::sync::Arc;

use self::current_object::{MethodWithoutObject, bound_method, current_method_id, is_bound, is_current_method};
use super::entity::{DiscoveredEntity, EntityBinding, EntityIdentity, method_tool_name};
use super::strategy::{CallGate, Injection, InjectionStrategy};
use super::view::{ConversationView, InjectionContext};
use toolwit_core::{Artifact, EntityMethods, NamedTool, Rebinding, Tool, ToolDefinition, ToolProvider, ToolResult};

type TypePredicate = dyn Fn(&dyn ToolProvider) -> bool + Send + Sync;
type ArtifactConversion = dyn Fn(&Artifact) -> Option<Arc<dyn ToolProvider>> + Send + Sync;
type ObjectPredicate = dyn Fn(&dyn ToolProvider, &ConversationView<'_>) -> bool + Send + Sync;

/// Offers the methods of a type as one set of tools that act on the current object: the object that a result returned last.
///
/// The strategy is an alternative to [`EntityTools`](super::EntityTools), which adds tools for each object. Objects of a
/// chained type do not get tools of their own. The tools of an added type are declared from the start and are locked until a
/// result holds exactly one object of the type: an entity, or an [`Artifact`] with a live object. This object becomes the
/// current one, and each further result with exactly one object replaces it. A result with several objects of the type does
/// not change it. An object without methods does not become the current one. With
/// [`with_any_type`](Self::with_any_type), objects of all other types are chained too. Their tools are added with the first
/// object.
///
/// The strategy is stateless: the current object is the one to which the conversation's tools are bound.
#[derive(Clone, Default)]
pub struct Chaining {
    types: Vec<ChainedType>,
    /// Whether objects of all other types are chained too.
    chains_any_type: bool,
}

/// A type whose objects are chained.
#[derive(Clone)]
struct ChainedType {
    /// Name of the type, as used in tool names.
    prefix: String,
    /// Returns whether an object is of the type.
    matches: Arc<TypePredicate>,
    /// Returns whether an object of the type may become the current object.
    accepts: Arc<ObjectPredicate>,
    /// Returns the live object of an artifact as an entity, or `None` if the artifact has no object of the type.
    entity_of_artifact: Arc<ArtifactConversion>,
    /// Definitions of the methods of the type.
    methods: Vec<ToolDefinition>,
}

impl Chaining {
    /// Creates a strategy without types.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a Rust type.
    #[must_use]
    pub fn with_type<T: Send + Sync + 'static>(self, methods: &EntityMethods<T>) -> Self {
        self.with_type_where(methods, |_: &T, _| true)
    }

    /// Adds a Rust type. Only objects for which `accept` returns `true` become the current object.
    #[must_use]
    pub fn with_type_where<T: Send + Sync + 'static>(
        mut self,
        methods: &EntityMethods<T>,
        accept: impl Fn(&T, &ConversationView<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let methods_of_type = methods.clone();
        self.types.push(ChainedType {
            prefix: methods.prefix().to_owned(),
            entity_of_artifact: Arc::new(move |artifact| {
                let entity = methods_of_type.of_artifact(artifact)?;
                Some(Arc::new(entity) as Arc<dyn ToolProvider>)
            }),
            matches: Arc::new(|provider| rust_object::<T>(provider).is_some()),
            accepts: Arc::new(move |provider, view| rust_object(provider).is_some_and(|object| accept(object, view))),
            methods: methods.definitions(),
        });
        self
    }

    /// Adds the type with this namespace and this prefix, such as a resource of a plugin. `methods` are the definitions of the
    /// methods of the type.
    #[must_use]
    pub fn with_namespace(
        mut self,
        namespace: impl Into<String>,
        prefix: impl Into<String>,
        methods: Vec<ToolDefinition>,
    ) -> Self {
        let (namespace, prefix) = (namespace.into(), prefix.into());
        self.types.push(ChainedType {
            prefix: prefix.clone(),
            matches: Arc::new(move |provider| provider.namespace() == namespace && provider.prefix() == prefix),
            accepts: Arc::new(|_, _| true),
            entity_of_artifact: Arc::new(|_| None),
            methods,
        });
        self
    }

    /// Chains the objects of all types that were not added, too. They share one current object: if a result holds exactly one
    /// object with methods whose type was not added, the tools of this object replace those of the previous current object.
    #[must_use]
    pub fn with_any_type(mut self) -> Self {
        self.chains_any_type = true;
        self
    }

    /// Adds the types of another strategy.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.types.extend(other.types);
        self.chains_any_type |= other.chains_any_type;
        self
    }

    /// Returns whether the strategy chains no type.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.types.is_empty() && !self.chains_any_type
    }

    /// Returns the tools of the added types, which are declared from the start. The conversation must have them.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools = self.types.iter().flat_map(|chained_type| {
            let without_object = |method: &ToolDefinition| {
                Arc::new(MethodWithoutObject::new(method, &chained_type.prefix)) as Arc<dyn Tool>
            };
            chained_type.methods.iter().map(without_object)
        });
        tools.collect()
    }
}

impl InjectionStrategy for Chaining {
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        let mut injection = Injection::none();
        let result = &context.call().result;
        for chained_type in &self.types {
            let Some(provider) = chained_type.single_object(result) else {
                continue;
            };
            if (chained_type.accepts)(provider.as_ref(), context) {
                make_current(&mut injection, provider.as_ref(), context);
            }
        }
        if self.chains_any_type {
            let other_objects = result
                .providers
                .iter()
                .filter(|provider| !self.has_type_of(provider.as_ref()));
            let mut with_methods = other_objects.filter(|provider| !provider.tools().is_empty());
            if let (Some(provider), None) = (with_methods.next(), with_methods.next()) {
                self.make_current_of_other_types(&mut injection, provider.as_ref(), context);
            }
        }
        injection
    }

    fn claims(&self, provider: &dyn ToolProvider) -> bool {
        self.chains_any_type || self.has_type_of(provider)
    }

    fn gate(&self, tool: &NamedTool, _view: &ConversationView<'_>) -> CallGate {
        if !is_current_method(&tool.definition.id) {
            CallGate::Ungated
        } else if is_bound(&tool.tool) {
            CallGate::Unlocked
        } else {
            CallGate::Locked(MethodWithoutObject::guidance(tool.name.as_str()))
        }
    }
}

impl ChainedType {
    /// Returns the only object of the type in a result: the only entity or, if the result has no entity of the type, the live
    /// object of the only artifact of the type. Returns `None` if the result has no object of the type, or several.
    fn single_object(&self, result: &ToolResult) -> Option<Arc<dyn ToolProvider>> {
        let entities = result
            .providers
            .iter()
            .filter(|provider| (self.matches)(provider.as_ref()));
        let mut objects: Vec<_> = entities.cloned().collect();
        if objects.is_empty() {
            let artifacts = result.artifacts.iter();
            objects.extend(artifacts.filter_map(|artifact| (self.entity_of_artifact)(artifact)));
        }
        if objects.len() == 1 { objects.pop() } else { None }
    }
}

impl Chaining {
    /// Returns whether the type of an object was added.
    fn has_type_of(&self, provider: &dyn ToolProvider) -> bool {
        self.types.iter().any(|chained_type| (chained_type.matches)(provider))
    }

    /// Makes an object of a type that was not added the current object of all such types. Removes the tools of the previous
    /// current object of these types.
    fn make_current_of_other_types(
        &self,
        injection: &mut Injection,
        provider: &dyn ToolProvider,
        context: &InjectionContext<'_>,
    ) {
        make_current(injection, provider, context);
        let stays = |tool: &&NamedTool| {
            let id = &tool.definition.id;
            let is_of_added_type = self
                .types
                .iter()
                .flat_map(|chained_type| &chained_type.methods)
                .any(|method| current_method_id(&method.id) == *id);
            is_of_added_type || injection.add.iter().any(|added| added.definition().id == *id)
        };
        let current_methods = context
            .tools()
            .iter()
            .filter(|tool| is_current_method(&tool.definition.id));
        let removed: Vec<_> = current_methods
            .filter(|tool| !stays(tool))
            .map(|tool| tool.definition.id.clone())
            .collect();
        injection.remove.extend(removed);
    }
}

/// Makes an object the current object of its type: adds its methods as methods of the current object, and records the object.
fn make_current(injection: &mut Injection, provider: &dyn ToolProvider, context: &InjectionContext<'_>) {
    let mut ids = Vec::new();
    let mut was_bound = false;
    for tool in provider.tools() {
        let id = current_method_id(&tool.definition().id);
        was_bound |= context.tools().by_id(&id).is_some_and(|named| is_bound(&named.tool));
        let names = vec![method_tool_name(provider.prefix(), &id)];
        injection
            .add
            .push(bound_method(tool, provider.prefix(), id.clone(), names));
        ids.push(id);
    }
    if ids.is_empty() {
        return;
    }
    let identity = |id| EntityIdentity::new(provider.namespace(), provider.prefix(), id);
    injection.discovered.push(DiscoveredEntity {
        identity: provider.instance_id().map(identity),
        prefix: provider.prefix().to_owned(),
        tools: ids,
        version: provider.version().to_owned(),
        binding: if was_bound {
            EntityBinding::Rebound
        } else {
            EntityBinding::New
        },
        rebinding: Rebinding::Latest,
        group_addition: None,
        namespace: provider.namespace().to_owned(),
    });
}

/// Returns the Rust object of an entity, or `None` if the entity does not have one of type `T`.
fn rust_object<T: Any>(provider: &dyn ToolProvider) -> Option<&T> {
    provider.object()?.downcast_ref()
}
