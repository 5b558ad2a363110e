//! The interceptors of a host: rules around every call of the tools of its conversations.

use std::sync::Arc;

use toolwit_agent::ConversationBuilder;
use toolwit_core::{DecoratedTool, Decorator, Error, ErrorKind, Interception, Phase, Tool, ToolSelector, ToolSet};
use toolwit_registry::{InterceptorSettings, Registry};
use toolwit_sandbox::PluginInterceptor;

/// A guard, and the tools that it covers. The conversations of a host share it, so that it is applied to a tool once.
type Guard = (ToolSelector, Arc<dyn Decorator>);

/// The interceptors of a host, the first one outermost.
#[derive(Clone, Default)]
pub(super) struct Interceptors(Arc<[Guard]>);

impl Interceptors {
    /// Adds the interceptors of plugins to those of the application, which are around them.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if a plugin is not installed or is not an interceptor, and the error of a broken plugin: without
    /// its interceptors, a host has no tools.
    pub(super) fn new(
        application: Vec<Guard>,
        settings: &[InterceptorSettings],
        registry: &Registry,
    ) -> Result<Self, Error> {
        let mut guards = application;
        for setting in settings {
            let guard: Arc<dyn Decorator> = Arc::new(Interception::new(load(setting, registry)?));
            let tools = setting.tools.iter().map(|tool| ToolSelector::later(tool.as_str()));
            let mut tools: Vec<_> = tools.collect();
            if tools.is_empty() {
                tools.push(ToolSelector::all());
            }
            guards.extend(tools.into_iter().map(|tools| (tools, guard.clone())));
        }
        Ok(Self(guards.into()))
    }

    /// Returns the guards, the innermost first, as they are applied.
    fn inside_out(&self) -> impl Iterator<Item = &Guard> {
        self.0.iter().rev()
    }

    /// Applies the guards to the tools of a conversation and of its agents.
    pub(super) fn around(&self, conversation: ConversationBuilder) -> ConversationBuilder {
        self.inside_out().fold(conversation, |conversation, (tools, guard)| {
            conversation.guard(tools.clone(), guard.clone())
        })
    }

    /// Applies the guards to the tools of a set, and to those that are added later.
    pub(super) fn decorate(&self, set: &mut ToolSet) {
        for (tools, guard) in self.inside_out() {
            set.decorate(tools, guard.clone());
        }
    }

    /// Applies the guards to a tool.
    pub(super) fn decorated(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        let selected = self.inside_out().filter(|(tools, _)| tools.selects(&tool, None));
        let guards: Vec<_> = selected.map(|(_, guard)| guard.clone()).collect();
        guards.into_iter().fold(tool, |tool, guard| {
            Arc::new(DecoratedTool::new(tool, guard)) as Arc<dyn Tool>
        })
    }
}

/// Loads the interceptor of a plugin. It is not replaced when the file changes.
fn load(setting: &InterceptorSettings, registry: &Registry) -> Result<PluginInterceptor, Error> {
    let name = &setting.plugin;
    let Some(package) = registry.package(name) else {
        let message = format!("the interceptor `{name}` is not installed, and no tool may be called without it");
        return Err(
            Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(
                "add the plugin to a plugin directory, or remove the interceptor from the configuration",
            ),
        );
    };
    if let Some(reason) = package.reason() {
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
