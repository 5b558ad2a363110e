//! The tools of a plugin's functions and entities.

use std::sync::Arc;

use async_trait::async_trait;

use super::command::CommandCall;
use super::contract_call::{ContractCall, ContractRequest};
use super::dynamic_call::{DynamicValidator, call_arguments, convert_tool_error, listed_name};
use super::follow_up::run_follow_up;
use super::function::FunctionCall;
use super::guarded_call::GuardedCall;
use super::plugin::Plugin;
use super::scope::ConversationPolicy;
use super::session::Session;
use super::session_call::{EntityTarget, SessionCall};

use crate::grants::Capability;
use crate::values::dynamic_export::ForeignContract;
use crate::values::types::{Function, FunctionKind};
use toolwit_core::{Arguments, CallAccess, Tool, ToolContext, ToolDefinition, ToolError, ToolResult};
use toolwit_core::{Error, ErrorKind, Phase};

/// The tool of a plugin's function, or of a method of one of its entities.
pub(crate) struct PluginTool {
    plugin: Arc<Plugin>,
    policy: ConversationPolicy,
    /// The session with the instance that all calls of a conversation share. `None` for a plugin without resources.
    session: Option<Arc<Session>>,
    /// The index of the function in the [`Shape`](crate::values::types::Shape) of the component.
    function_index: usize,
    /// The entity on which the function is called.
    target: EntityTarget,
    definition: ToolDefinition,
    /// The validator of the arguments, used only for a dynamic tool.
    dynamic_validator: DynamicValidator,
}

impl PluginTool {
    /// Creates the tool of a function that is not called on an entity.
    pub(crate) fn of_function(
        plugin: Arc<Plugin>,
        policy: ConversationPolicy,
        session: Option<Arc<Session>>,
        function_index: usize,
        definition: ToolDefinition,
    ) -> Arc<Self> {
        Arc::new(Self {
            plugin,
            policy,
            session,
            function_index,
            target: EntityTarget::None,
            definition,
            dynamic_validator: DynamicValidator::default(),
        })
    }

    /// Creates the tool of a method. Each call runs on the entity that `target` selects.
    pub(crate) fn of_method(
        session: Arc<Session>,
        function_index: usize,
        target: EntityTarget,
        definition: ToolDefinition,
    ) -> Arc<Self> {
        Arc::new(Self {
            plugin: session.plugin().clone(),
            policy: session.policy().clone(),
            session: Some(session),
            function_index,
            target,
            definition,
            dynamic_validator: DynamicValidator::default(),
        })
    }

    fn function(&self) -> Result<&Function, Error> {
        self.plugin
            .inspection()
            .shape
            .functions
            .get(self.function_index)
            .ok_or_else(|| Error::new(ErrorKind::Internal, Phase::Execute, "the function does not exist"))
    }

    /// Returns the contract of the other host for which the component was built, if it was built for another host.
    fn foreign_contract(&self) -> Option<ForeignContract> {
        self.plugin.inspection().shape.dynamic.as_ref()?.contract.foreign()
    }

    /// Calls the function. Does not run the follow-up call that its result may request.
    pub(super) async fn run(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, Error> {
        let function = self.function()?;
        let is_dynamic = function.kind == FunctionKind::Dynamic;
        let arguments = if is_dynamic {
            self.dynamic_validator.check(&self.definition, arguments)?
        } else {
            arguments
        };
        let call = GuardedCall {
            plugin: &self.plugin,
            conversation: self.policy.conversation(),
            context,
            deadline: None,
            is_long_running: self.plugin.runtime().is_long_running(&self.definition.id),
        };
        if is_dynamic && let Some(contract) = self.foreign_contract() {
            let tool = listed_name(&self.definition);
            // Boxed, because components of other hosts are rare and would enlarge the future of every call.
            let contract_call = async {
                let request = ContractRequest::Call { tool, arguments };
                call.run(&mut ContractCall::new(contract, request)).await
            };
            return Box::pin(contract_call).await;
        }
        let arguments = if is_dynamic {
            call_arguments(&self.definition, arguments)
        } else {
            arguments
        };
        let result = match &self.session {
            _ if function.kind == FunctionKind::Command => {
                // Boxed, because commands are rare and would enlarge the future of every call.
                let command = async { call.run(&mut CommandCall::new(self.function_index, arguments)).await };
                Box::pin(command).await?
            }
            Some(session) => {
                call.run(&mut SessionCall::new(
                    session,
                    self.function_index,
                    &self.target,
                    arguments,
                ))
                .await?
            }
            None => {
                call.run(&mut FunctionCall::new(function, self.function_index, arguments))
                    .await?
            }
        };
        if is_dynamic {
            convert_tool_error(result)
        } else {
            Ok(result)
        }
    }

    /// Adds the plugin and the tool to an error, and selects who receives it: the model or the operator.
    pub(super) fn tool_error(&self, error: Error) -> ToolError {
        let error = error
            .with_plugin(self.plugin.name())
            .with_tool(self.definition.id.as_str());
        match error.kind {
            ErrorKind::Internal | ErrorKind::Configuration => ToolError::Operator(error),
            _ => ToolError::Model(error),
        }
    }

    /// Returns another tool of the same plugin, by its id or its name. Returns `None` if it does not exist, or if the
    /// conversation may not use it.
    pub(super) fn sibling(&self, id_or_name: &str) -> Option<Self> {
        let inspection = self.plugin.inspection();
        let mut functions = inspection.tools.iter().zip(&inspection.tool_functions);
        let (definition, function_index) = functions
            .find(|(definition, _)| definition.id.as_str() == id_or_name || definition.name() == id_or_name)
            .filter(|(definition, _)| self.policy.may_use(|| definition.id.clone()))?;
        Some(Self {
            plugin: self.plugin.clone(),
            policy: self.policy.clone(),
            session: self.session.clone(),
            function_index: *function_index,
            target: EntityTarget::None,
            definition: definition.clone(),
            dynamic_validator: DynamicValidator::default(),
        })
    }
}

#[async_trait]
impl Tool for PluginTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let outcome = match self.run(arguments, context).await {
            Ok(result) if result.follow_up.is_some() => Box::pin(run_follow_up(self, result, context)).await,
            outcome => outcome,
        };
        outcome.map_err(|error| self.tool_error(error))
    }

    async fn access(&self, _arguments: &Arguments, context: &ToolContext) -> CallAccess {
        let conversation = self.policy.conversation();
        self.plugin
            .access_in(conversation, self.definition.effect, context)
            .await
    }

    async fn redacted(&self, arguments: Arguments, context: &ToolContext) -> Arguments {
        self.plugin
            .redacted(self.policy.conversation(), arguments, context)
            .await
    }

    fn calls_tools(&self) -> bool {
        self.plugin.declared_capabilities().has(Capability::Tools)
    }

    fn serial_group(&self) -> Option<u64> {
        self.session.as_ref().map(|session| session.number())
    }
}
