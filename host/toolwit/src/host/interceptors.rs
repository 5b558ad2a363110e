//! The interceptors of a host: they decide about each tool call of its conversations before the call runs, and about
//! each outcome afterwards.

use std::sync::Arc;

use async_trait::async_trait;
use toolwit_agent::ConversationBuilder;
use toolwit_core::{
    Arguments, DecoratedTool, Decorator, Error, ErrorKind, Guards, Interception, Phase, Tool, ToolContext,
    ToolDefinition, ToolError, ToolResult, ToolSelector, ToolSet,
};
use toolwit_registry::{InterceptorSettings, Package, Registry};
use toolwit_sandbox::{PluginInterceptor, Scope};

/// The interceptors of a host, as guards with the tools that they cover. All conversations of a host share the `Arc` of
/// each guard. By this `Arc`, a tool set recognises a guard that is already applied to a tool.
#[derive(Clone, Default)]
pub(super) struct Interceptors(Guards);

impl Interceptors {
    /// Loads the interceptors of plugins, and adds them to those of the application. The first interceptor of the
    /// application is the outermost; the last interceptor of a plugin is the innermost.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if a plugin is not installed or is not an interceptor. If a plugin is broken, its
    /// error: no tool may run without the interceptors.
    pub(super) fn new(
        application_guards: Vec<(ToolSelector, Arc<dyn Decorator>)>,
        settings: &[InterceptorSettings],
        registry: &Registry,
    ) -> Result<Self, Error> {
        let mut guards = application_guards;
        for setting in settings {
            let guard: Arc<dyn Decorator> = Arc::new(Interception::new(load_interceptor(setting, registry)?));
            let tools = setting.tools.iter().map(|tool| ToolSelector::later(tool.as_str()));
            let mut tools: Vec<_> = tools.collect();
            if tools.is_empty() {
                tools.push(ToolSelector::all());
            }
            guards.extend(tools.into_iter().map(|tools| (tools, guard.clone())));
        }
        // `Guards` has the opposite order: the innermost guard is first.
        Ok(Self(Guards::from_decorators(guards.iter().rev())))
    }

    /// Applies the guards to the tools of a conversation and of its agents.
    pub(super) fn guard_conversation(&self, conversation: ConversationBuilder) -> ConversationBuilder {
        let guards = self.0.entries().iter().cloned();
        guards.fold(conversation, |conversation, (tools, guard)| {
            conversation.guard(tools, guard)
        })
    }

    /// Applies the guards to the tools of a set, and to those that are added later.
    pub(super) fn decorate_set(&self, set: &mut ToolSet) {
        for (tools, guard) in self.0.entries() {
            set.decorate(tools, guard.clone());
        }
    }

    /// Applies the guards to a tool that is called without a conversation, and to the calls that this tool starts.
    pub(super) fn decorate_tool(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        if self.0.entries().is_empty() {
            return tool;
        }
        Arc::new(DecoratedTool::new(
            self.0.apply_to(tool),
            Arc::new(InterceptorCarrier(self.clone())),
        ))
    }

    /// Returns the context with the interceptors. If a tool is called with this context outside a conversation, the
    /// interceptors also apply to the calls that the tool starts.
    pub(super) fn add_to_context(&self, context: ToolContext) -> ToolContext {
        self.0.add_to(context)
    }
}

/// A decorator that adds the interceptors to the context of a call.
struct InterceptorCarrier(Interceptors);

#[async_trait]
impl Decorator for InterceptorCarrier {
    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        tool.call(arguments, &self.0.add_to_context(context.clone())).await
    }
}

/// Replaces the names by which the settings select tools by the ids of these tools, if the names are those that clients and models
/// see. Such a name can have a hash, and is not a name of the tool itself.
///
/// # Errors
/// [`ErrorKind::Configuration`] for a tool that does not exist, because calls of the tool that was meant would not be intercepted.
/// A tool may be missing if `can_appear_later`: then a warning is logged, and the tool is covered when it appears.
pub(super) fn select_by_id(
    settings: &mut [InterceptorSettings],
    registry: &Registry,
    native_tools: &[Arc<dyn Tool>],
    can_appear_later: bool,
) -> Result<(), Error> {
    if settings.iter().all(|setting| setting.tools.is_empty()) {
        return Ok(());
    }
    let mut tools = registry.tools(&Scope::new());
    tools.extend(native_tools.iter().cloned());
    let names = ToolSet::new().names_after_adding(&tools);
    let plugins = registry.packages().iter().filter_map(Package::plugin);
    let entities = plugins.flat_map(|plugin| &plugin.inspection().entities);
    let methods: Vec<_> = entities.flat_map(|entity| &entity.methods).collect();
    for setting in settings {
        let interceptor = setting.plugin.clone();
        for wanted in &mut setting.tools {
            let selector = ToolSelector::later(wanted.as_str());
            let is_wanted_method = |method: &&ToolDefinition| method.id.as_str() == wanted || method.name() == wanted;
            if tools.iter().any(|tool| selector.selects(tool, None)) || methods.iter().any(is_wanted_method) {
                continue;
            }
            let named = tools.iter().zip(&names).find(|(_, name)| name.as_str() == wanted);
            match named {
                Some((tool, _)) => *wanted = tool.definition().id.to_string(),
                None if can_appear_later => {
                    tracing::warn!(
                        "the interceptor `{interceptor}` covers the tool `{wanted}`, which does not exist yet"
                    );
                }
                None => {
                    let message =
                        format!("the interceptor `{interceptor}` covers the tool `{wanted}`, which does not exist");
                    return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                        .with_suggestion("name a tool by its name or id, or omit the tools to cover every tool"));
                }
            }
        }
    }
    Ok(())
}

/// Loads the interceptor of a plugin. The loaded interceptor stays in use when the file of the plugin changes.
fn load_interceptor(setting: &InterceptorSettings, registry: &Registry) -> Result<PluginInterceptor, Error> {
    let name = &setting.plugin;
    let Some(package) = registry.package(name) else {
        let message = format!("the interceptor `{name}` is not installed, and no tool may be called without it");
        return Err(
            Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(
                "add the plugin to a plugin directory, or remove the interceptor from the configuration",
            ),
        );
    };
    if let Some(reason) = package.broken_reason() {
        let message = format!("the interceptor `{name}` cannot be loaded: {}", reason.message);
        return Err(Error::new(reason.kind, Phase::Registry, message).with_source(reason.clone()));
    }
    let plugin = registry.plugin_of(name).cloned().ok_or_else(|| {
        let message = format!("the interceptor `{name}` cannot be loaded");
        Error::new(ErrorKind::Internal, Phase::Registry, message)
    })?;
    let interceptor = PluginInterceptor::new(plugin.clone())?;
    plugin.retain_component();
    Ok(interceptor)
}
