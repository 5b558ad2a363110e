//! Tools of the object that was returned last.

use std::any::Any;
use std::sync::Arc;

use super::change::{DiscoveredEntity, Injection};
use super::context::InjectionContext;
use super::current::{Waiting, current, current_name, is_bound, is_current};
use super::entities::{EntityBinding, EntityIdentity};
use super::gate::CallGate;
use super::rebranded::Rebranded;
use super::strategy::InjectionStrategy;
use super::view::ConversationView;
use toolwit_core::{EntityMethods, NamedTool, Tool, ToolDefinition, ToolProvider};

type Recognise = dyn Fn(&dyn ToolProvider) -> bool + Send + Sync;
type Accept = dyn Fn(&dyn ToolProvider, &ConversationView<'_>) -> bool + Send + Sync;

/// Offers the methods of a type as one set of tools, which act on the object that was returned last.
///
/// This is the other way to show entities, beside [`EntityTools`](super::EntityTools): a type that is chained brings no tools of
/// its own for each object. The tools of a type are declared from the start, and answer that they are not available until a
/// result holds a single object of the type; the newest one wins. Results that hold several bind none. Objects without methods
/// are passed over.
#[derive(Clone, Default)]
pub struct Chaining {
    sources: Vec<Source>,
    any: bool,
}

/// A type whose objects are followed.
#[derive(Clone)]
struct Source {
    prefix: String,
    recognise: Arc<Recognise>,
    accept: Arc<Accept>,
    methods: Vec<ToolDefinition>,
}

impl Chaining {
    /// Follows nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Follows the objects of a Rust type.
    #[must_use]
    pub fn with_type<T: Send + Sync + 'static>(self, methods: &EntityMethods<T>) -> Self {
        self.with_type_where(methods, |_: &T, _| true)
    }

    /// Follows those objects of a Rust type that pass; the others change nothing.
    #[must_use]
    pub fn with_type_where<T: Send + Sync + 'static>(
        mut self,
        methods: &EntityMethods<T>,
        accept: impl Fn(&T, &ConversationView<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.sources.push(Source {
            prefix: methods.prefix().to_owned(),
            recognise: Arc::new(|provider| object::<T>(provider).is_some()),
            accept: Arc::new(move |provider, view| object(provider).is_some_and(|object| accept(object, view))),
            methods: methods.definitions(),
        });
        self
    }

    /// Follows the entities of one namespace and prefix, such as the instances of a plugin's resource, with these methods.
    #[must_use]
    pub fn with_namespace(
        mut self,
        namespace: impl Into<String>,
        prefix: impl Into<String>,
        methods: Vec<ToolDefinition>,
    ) -> Self {
        let (namespace, prefix) = (namespace.into(), prefix.into());
        self.sources.push(Source {
            prefix: prefix.clone(),
            recognise: Arc::new(move |provider| provider.namespace() == namespace && provider.prefix() == prefix),
            accept: Arc::new(|_, _| true),
            methods,
        });
        self
    }

    /// Follows every object, of whatever type: the tools of the one that was returned last take the place of those before.
    #[must_use]
    pub fn with_any_type(mut self) -> Self {
        self.any = true;
        self
    }

    /// Follows what another one follows too.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.sources.extend(other.sources);
        self.any |= other.any;
        self
    }

    /// Tells whether nothing is followed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty() && !self.any
    }

    /// Returns the tools that are declared before there is an object; the conversation must have them.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let methods = self.sources.iter().flat_map(|source| {
            let waiting = |method: &ToolDefinition| Arc::new(Waiting::new(method, &source.prefix)) as Arc<dyn Tool>;
            source.methods.iter().map(waiting)
        });
        methods.collect()
    }
}

impl InjectionStrategy for Chaining {
    fn evaluate(&self, context: &InjectionContext<'_>) -> Injection {
        let mut injection = Injection::none();
        let providers = &context.call().result.providers;
        let mut taken = Vec::new();
        for source in &self.sources {
            let mut fitting = providers
                .iter()
                .filter(|provider| (source.recognise)(provider.as_ref()));
            let (Some(provider), None) = (fitting.next(), fitting.next()) else {
                continue;
            };
            taken.push(provider);
            if (source.accept)(provider.as_ref(), context) {
                bind(&mut injection, provider.as_ref(), context);
            }
        }
        if self.any {
            let left = providers
                .iter()
                .filter(|provider| !taken.iter().any(|taken| Arc::ptr_eq(taken, provider)));
            let mut left = left.filter(|provider| !provider.tools().is_empty());
            if let (Some(provider), None) = (left.next(), left.next()) {
                self.replace(&mut injection, provider.as_ref(), context);
            }
        }
        injection
    }

    fn claims(&self, provider: &dyn ToolProvider) -> bool {
        self.any || self.sources.iter().any(|source| (source.recognise)(provider))
    }

    fn gate(&self, tool: &NamedTool, _scene: &ConversationView<'_>) -> CallGate {
        if !is_current(&tool.definition.id) {
            return CallGate::Ungated;
        }
        match is_bound(&tool.tool) {
            true => CallGate::Open,
            false => CallGate::Locked(Waiting::told(tool.name.as_str())),
        }
    }
}

impl Chaining {
    /// Binds an object of any type, and drops the tools of the objects of other types that were bound before.
    fn replace(&self, injection: &mut Injection, provider: &dyn ToolProvider, context: &InjectionContext<'_>) {
        bind(injection, provider, context);
        let keeps = |tool: &&NamedTool| {
            let id = &tool.definition.id;
            let is_declared = self
                .sources
                .iter()
                .flat_map(|source| &source.methods)
                .any(|method| current(&method.id) == *id);
            is_declared || injection.add.iter().any(|added| added.definition().id == *id)
        };
        let bound = context.tools().iter().filter(|tool| is_current(&tool.definition.id));
        let gone: Vec<_> = bound
            .filter(|tool| !keeps(tool))
            .map(|tool| tool.definition.id.clone())
            .collect();
        injection.remove.extend(gone);
    }
}

/// Lets the tools of a type act on an object.
fn bind(injection: &mut Injection, provider: &dyn ToolProvider, context: &InjectionContext<'_>) {
    let mut ids = Vec::new();
    let mut is_known = false;
    for tool in provider.tools() {
        let id = current(&tool.definition().id);
        is_known |= context.tools().by_id(&id).is_some_and(|there| is_bound(&there.tool));
        let names = vec![current_name(provider.prefix(), &id)];
        ids.push(id.clone());
        injection.add.push(Arc::new(Rebranded::new(id, tool).named(names)));
    }
    if ids.is_empty() {
        return;
    }
    let key = |id| EntityIdentity::new(provider.namespace(), provider.prefix(), id);
    injection.discovered.push(DiscoveredEntity {
        key: provider.instance_id().map(key),
        prefix: provider.prefix().to_owned(),
        tools: ids,
        depth: provider.depth(),
        binding: if is_known {
            EntityBinding::Rebound
        } else {
            EntityBinding::New
        },
        shared: None,
        namespace: provider.namespace().to_owned(),
    });
}

fn object<T: Any>(provider: &dyn ToolProvider) -> Option<&T> {
    provider.object()?.downcast_ref()
}
