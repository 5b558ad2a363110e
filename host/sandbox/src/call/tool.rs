//! A function of a plugin as a tool.

use std::sync::Arc;

use async_trait::async_trait;

use super::answer::{answer, bounded_artifacts};
use super::command;
use super::dynamic_call::{DynamicCall, answered};
use super::instance::{CallClock, Instance};
use super::scope::Confines;
use super::session::{Session, Target};
use crate::grants::Capability;
use crate::grants::authority::Authority;
use crate::link::wasi::Stdio;
use crate::plugin::Plugin;
use crate::values::decode::{DecodeError, NoHandles, decode_arguments};
use crate::values::types::{Function, FunctionKind};
use toolwit_core::{Arguments, Tool, ToolContext, ToolDefinition, ToolError, ToolResult, ToolStatus, parse_arguments};
use toolwit_core::{Error, ErrorKind, Phase};

/// A function of a plugin, or a method of one of its entities.
pub(crate) struct PluginTool {
    plugin: Arc<Plugin>,
    confines: Confines,
    /// The instance that a conversation's calls share; `None` for a plugin without resources.
    session: Option<Arc<Session>>,
    function: usize,
    target: Target,
    definition: ToolDefinition,
    /// How it is called, if it is one that the component told.
    dynamic: DynamicCall,
}

impl PluginTool {
    /// A function that needs no entity of its own.
    pub(crate) fn free(
        plugin: Arc<Plugin>,
        confines: Confines,
        session: Option<Arc<Session>>,
        function: usize,
        definition: ToolDefinition,
    ) -> Arc<Self> {
        Arc::new(Self {
            plugin,
            confines,
            session,
            function,
            target: Target::None,
            definition,
            dynamic: DynamicCall::default(),
        })
    }

    /// A method of an entity.
    pub(crate) fn method(
        session: Arc<Session>,
        function: usize,
        target: Target,
        definition: ToolDefinition,
    ) -> Arc<Self> {
        Arc::new(Self {
            plugin: session.plugin().clone(),
            confines: session.confines().clone(),
            session: Some(session),
            function,
            target,
            definition,
            dynamic: DynamicCall::default(),
        })
    }

    fn function(&self) -> Result<&Function, Error> {
        self.plugin
            .inspection()
            .shape
            .functions
            .get(self.function)
            .ok_or_else(|| Error::new(ErrorKind::Internal, Phase::Execute, "the function is not there"))
    }

    async fn run(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, Error> {
        let function = self.function()?;
        let is_dynamic = function.kind == FunctionKind::Dynamic;
        let arguments = match is_dynamic {
            true => self.dynamic.arguments(&self.definition, arguments)?,
            false => arguments,
        };
        let authority = self.plugin.authority(self.confines.conversation(), context).await?;
        let called = match &self.session {
            _ if function.kind == FunctionKind::Command => {
                Box::pin(command::run(
                    &self.plugin,
                    self.function,
                    arguments,
                    context,
                    &authority,
                ))
                .await
            }
            Some(session) => {
                session
                    .call(self.function, &self.target, arguments, context, &authority)
                    .await
            }
            None => self.run_fresh(function, arguments, context, &authority).await,
        };
        let concluded = authority.conclude(called)?;
        match is_dynamic {
            true => answered(concluded),
            false => Ok(concluded),
        }
    }

    /// Lets the work go on that a result hands over: in the background of the conversation, or at once where nobody could be
    /// told later.
    async fn go_on(&self, mut result: ToolResult, context: &ToolContext) -> Result<ToolResult, Error> {
        let Some(follow_up) = result.follow_up.take() else {
            return Ok(result);
        };
        let next = self.sibling(&follow_up.tool)?;
        let arguments = parse_arguments(&follow_up.arguments)
            .map_err(|error| handed_over_wrongly(&follow_up.tool, &error.to_string()))?
            .arguments;
        if let Ok(completion) = context.background_task() {
            // What may be called now may be locked or gone by then.
            let context = completion.context().clone().without_tools();
            completion.spawn(async move {
                let finished = next.finish(arguments, &context).await;
                finished.map_err(|error| next.told(error))
            });
            result.status = ToolStatus::Pending;
            return Ok(result);
        }
        let mut rest = next.finish(arguments, context).await?;
        rest.for_llm = format!("{}\n{}", result.for_llm, rest.for_llm);
        rest.for_user = rest.for_user.or(result.for_user);
        rest.artifacts.splice(0..0, result.artifacts);
        Ok(rest)
    }

    /// Says whose tool failed, and who must hear of it.
    fn told(&self, error: Error) -> ToolError {
        let error = error
            .with_plugin(self.plugin.name())
            .with_tool(self.definition.id.as_str());
        match error.kind {
            ErrorKind::Internal | ErrorKind::Configuration => ToolError::Operator(error),
            _ => ToolError::Model(error),
        }
    }

    /// Does what an earlier call handed over. It may not hand over more: work that goes on for ever ends here.
    async fn finish(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, Error> {
        let result = self.run(arguments, context).await?;
        match result.follow_up {
            None => Ok(result),
            Some(_) => Err(handed_over_wrongly(
                self.definition.id.as_str(),
                "it runs in the background already and may not hand over more",
            )),
        }
    }

    /// Finds another function of the plugin by its id or its name.
    fn sibling(&self, wanted: &str) -> Result<Self, Error> {
        let inspection = self.plugin.inspection();
        let mut functions = inspection.tools.iter().zip(&inspection.tool_functions);
        let (definition, function) = functions
            .find(|(definition, _)| definition.id.as_str() == wanted || definition.name() == wanted)
            .filter(|(definition, _)| self.confines.may_use(|| definition.id.clone()))
            .ok_or_else(|| handed_over_wrongly(wanted, "the plugin has no such function for this conversation"))?;
        Ok(Self {
            plugin: self.plugin.clone(),
            confines: self.confines.clone(),
            session: self.session.clone(),
            function: *function,
            target: Target::None,
            definition: definition.clone(),
            dynamic: DynamicCall::default(),
        })
    }

    /// Runs in an instance of its own, which is dropped with the call.
    async fn run_fresh(
        &self,
        function: &Function,
        arguments: Arguments,
        context: &ToolContext,
        authority: &Authority,
    ) -> Result<ToolResult, Error> {
        let params = decode_arguments(&function.params, &arguments, &mut NoHandles).map_err(invalid)?;
        let limits = self.plugin.limits_for(context)?;
        let linked = self.plugin.linked(context).await?;
        let place = self.plugin.place(context, &limits).await?;
        let _running = self.plugin.runtime().engines.ticker.run();
        let clock = CallClock::start(&limits, context);
        let network = &self.plugin.runtime().network;
        let mut instance = Instance::new(&linked, &clock, Stdio::Log, authority, network).await?;
        let value = instance.call(&linked, self.function, &params, &clock).await;
        let (log, artifacts) = (instance.take_log(), instance.take_artifacts());
        if let Some(log) = &log {
            tracing::debug!(tool = %self.definition.id, log = &*authority.redactor.text(log), "the guest wrote");
        }
        let mut result = answer(function, value?, &mut std::iter::empty(), &limits)?;
        let mut usage = instance.usage(&clock);
        usage.queued = place.queued;
        result.usage = Some(usage);
        result.log = log;
        result.artifacts.extend(artifacts);
        bounded_artifacts(&result, &limits)?;
        Ok(result)
    }
}

#[async_trait]
impl Tool for PluginTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let called = match self.run(arguments, context).await {
            Ok(result) if result.follow_up.is_some() => Box::pin(self.go_on(result, context)).await,
            answered => answered,
        };
        called.map_err(|error| self.told(error))
    }

    fn calls_tools(&self) -> bool {
        self.plugin.declared().has(Capability::Tools)
    }

    fn serial_group(&self) -> Option<u64> {
        self.session.as_ref().map(|session| session.number())
    }
}

fn handed_over_wrongly(tool: &str, why: &str) -> Error {
    let tool: String = tool.chars().take(200).collect();
    let message = format!("the work that was handed over to `{tool}` cannot go on: {why}");
    Error::new(ErrorKind::Tool, Phase::Execute, message)
}

pub(crate) fn invalid(error: DecodeError) -> Error {
    Error::new(ErrorKind::InvalidArguments, Phase::Validate, error.to_string())
}
