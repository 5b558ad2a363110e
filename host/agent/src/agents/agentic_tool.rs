//! Agentic tools: tools that run their own loop.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::agent::Agent;
use super::agentic_run::run_agent;
use crate::conversation::LoopConfig;
use crate::event::Observer;
use crate::injection::{Chaining, InjectionStrategy, MachineState, Playbook, Reference, StateMachine};
use crate::limits::LoopLimits;
use crate::model::{ChatModel, ChatOptions, ModelChoice};
use crate::process::Budget;
use toolwit_core::{
    Arguments, Error, InputValidator, Parameter, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolObject,
    ToolResult,
};

/// The name of the only argument of an agentic tool without declared parameters.
const TASK_ARGUMENT: &str = "task";

/// A tool that runs a model with its own tools. To its callers it is a tool like any other.
///
/// The inner loop has its own tools, limits and history. By default, it uses the model of the calling conversation. It shares the
/// context and the blackboard with the calling conversation, and its usage is charged to the budget of that conversation. A
/// [`LoopConfig`] contains the settings of the inner loop. A clone of the tool has its own copy of these settings.
///
/// ```
/// use toolwit_agent::model::ModelChoice;
/// use toolwit_agent::AgenticTool;
/// use toolwit_core::{Parameter, Tool};
///
/// # fn example(add: impl Tool + 'static, multiply: impl Tool + 'static) -> impl Tool {
/// let calculator = AgenticTool::new("calculator", "Computes expressions.")
///     .with_tool(add)
///     .with_tool(multiply)
///     .with_parameter(Parameter::string("expression", "The expression to compute"))
///     .with_parameter(Parameter::integer("precision", "Decimal places").optional())
///     .with_model_choice(ModelChoice::role("smart"));
/// # calculator }
/// ```
#[derive(Clone)]
pub struct AgenticTool {
    pub(super) definition: ToolDefinition,
    parameters: Vec<Parameter>,
    pub(super) config: LoopConfig,
    pub(super) make_system_prompt: Option<Arc<MakeSystemPrompt>>,
    /// The error of the first invalid parameter. A call checks its arguments and its nesting depth first, and then fails with this
    /// error.
    pub(super) parameter_error: Option<Error>,
}

/// Creates the system prompt from the context and the input of a call.
type MakeSystemPrompt = dyn Fn(&ToolContext, &str) -> String + Send + Sync;

impl AgenticTool {
    /// Creates an agentic tool without inner tools. Until a parameter is added, it has one text argument, `task`.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let name = name.into();
        let task = Parameter::string(TASK_ARGUMENT, "The task, with all information that it requires");
        let definition = ToolDefinition::new(ToolId::native(&name), name, description, input_schema(&[task]));
        Self {
            definition,
            parameters: Vec::new(),
            config: LoopConfig::new(),
            make_system_prompt: None,
            parameter_error: None,
        }
    }

    /// Sets the configuration of the inner loop. It replaces all settings that a [`LoopConfig`] has.
    #[must_use]
    pub fn with_config(mut self, config: LoopConfig) -> Self {
        self.config = config;
        self
    }

    /// Adds a parameter. The parameters replace the argument `task`. If a parameter is invalid, every call fails. A call checks its
    /// arguments and its nesting depth first, and then fails with the error of the parameter.
    #[must_use]
    pub fn with_parameter(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        match Parameter::object_schema(self.parameters.clone()) {
            Ok(schema) => self.definition.input_schema = Arc::new(schema),
            Err(error) => {
                self.parameter_error.get_or_insert(error);
            }
        }
        self
    }

    /// Sets a function that creates the system prompt for each call from its context and its input.
    #[must_use]
    pub fn with_system_prompt_from(
        mut self,
        make_system_prompt: impl Fn(&ToolContext, &str) -> String + Send + Sync + 'static,
    ) -> Self {
        self.make_system_prompt = Some(Arc::new(make_system_prompt));
        self
    }

    /// Sets the system prompt. The default prompt contains the description of the tool.
    #[must_use]
    pub fn with_system_prompt(mut self, instructions: impl Into<String>) -> Self {
        self.make_system_prompt = None;
        self.map_config(|config| config.with_system(instructions))
    }

    /// Adds the methods of an object as inner tools. An object without methods adds no tools.
    #[must_use]
    pub fn with_tool_object(self, object: impl Into<ToolObject>) -> Self {
        self.map_config(|config| config.with_object_tools(object.into().tools_if_any()))
    }

    /// Sets the model. By default it is the model of the calling conversation.
    #[must_use]
    pub fn with_model(self, model: impl ChatModel + 'static) -> Self {
        self.map_config(|config| config.with_model(model))
    }

    /// Chooses one of the models of the [configuration](LoopConfig::with_models). If the configuration has no models, chooses one
    /// of the models of the calling conversation.
    #[must_use]
    pub fn with_model_choice(self, choice: impl Into<ModelChoice>) -> Self {
        self.map_config(|config| config.with_model_choice(choice))
    }

    /// Sets the options of the model.
    #[must_use]
    pub fn with_options(self, options: ChatOptions) -> Self {
        self.map_config(|config| config.with_options(options))
    }

    /// Sets the iteration limit of a call; 20 by default.
    #[must_use]
    pub fn with_iterations_max(self, iterations_max: u32) -> Self {
        self.map_config(|config| config.with_iterations_max(iterations_max))
    }

    /// Sets the limits of a call, including the background calls of the inner loop.
    #[must_use]
    pub fn with_limits(self, limits: LoopLimits) -> Self {
        self.map_config(|config| config.with_limits(limits))
    }

    /// Sets the budget of a call, in addition to the outer budgets.
    #[must_use]
    pub fn with_budget(self, budget: Budget) -> Self {
        self.map_config(|config| config.with_budget(budget))
    }

    /// Adds an inner tool.
    #[must_use]
    pub fn with_tool(self, tool: impl Tool + 'static) -> Self {
        self.map_config(|config| config.with_tool(tool))
    }

    /// Adds inner tools.
    #[must_use]
    pub fn with_tools(self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.map_config(|config| config.with_tools(tools))
    }

    /// Adds the tools of the tool group with this role, such as `web`. The role is looked up in the
    /// [groups of the configuration](LoopConfig::with_groups). If the configuration has no groups, the role is looked up in the
    /// groups of the calling conversation.
    #[must_use]
    pub fn with_role(self, role: impl Into<String>) -> Self {
        self.map_config(|config| config.with_role(role))
    }

    /// Adds a strategy to the inner loop, after the earlier strategies. Also adds the initial tools of the strategy. The guidance
    /// of the strategy applies unless guidance is already set.
    #[must_use]
    pub fn with_strategy(self, strategy: impl InjectionStrategy + 'static) -> Self {
        self.map_config(|config| config.with_strategy(strategy))
    }

    /// Sets the playbook, and adds its tools. The playbook replaces an earlier playbook and its tools.
    #[must_use]
    pub fn with_playbook(self, playbook: Playbook) -> Self {
        self.map_config(|config| config.with_playbook(playbook))
    }

    /// Sets the state machine, and adds its tools. The state machine replaces an earlier state machine and its tools.
    ///
    /// A clone of the agentic tool can have another state machine than the original. For example, its state machine can
    /// [start in another state](StateMachine::with_initial_state).
    #[must_use]
    pub fn with_state_machine<S: MachineState>(self, machine: StateMachine<S>) -> Self {
        self.map_config(|config| config.with_state_machine(machine))
    }

    /// Chains tools to returned objects: the methods of a type are declared from the start, and act on the object that an inner
    /// tool returned last. See [`LoopConfig::with_chaining`].
    #[must_use]
    pub fn with_chaining(self, chaining: Chaining) -> Self {
        self.map_config(|config| config.with_chaining(chaining))
    }

    /// Adds a reference: the instructions and tools for a subject, such as the user's memory. The instructions are appended to
    /// the inner system prompt. The tools become inner tools.
    #[must_use]
    pub fn with_reference(self, reference: &Reference) -> Self {
        self.map_config(|config| config.with_reference(reference))
    }

    /// Adds an observer of the inner loop.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Self {
        self.map_config(|config| config.with_observer(observer))
    }

    /// Sets whether the result contains the artifacts of inner agentic tools. By default it does not. It always contains the
    /// artifacts of other inner tools.
    #[must_use]
    pub fn with_nested_artifacts(self, are_included: bool) -> Self {
        self.map_config(|config| config.with_nested_artifacts(are_included))
    }

    fn map_config(mut self, change: impl FnOnce(LoopConfig) -> LoopConfig) -> Self {
        self.config = change(self.config);
        self
    }

    /// Returns the prompt of the inner loop: the task, or the arguments as JSON if the tool has parameters.
    fn prompt(&self, arguments: &Arguments) -> String {
        match arguments.get(TASK_ARGUMENT) {
            Some(Value::String(task)) if self.parameters.is_empty() => task.clone(),
            _ => Value::Object(arguments.clone()).to_string(),
        }
    }
}

#[async_trait]
impl Tool for AgenticTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let validator = InputValidator::of(&self.definition).map_err(ToolError::Operator)?;
        let arguments = validator.check(arguments)?;
        run_agent(self, &self.prompt(&arguments), context).await
    }

    fn is_agent(&self) -> bool {
        true
    }
}

/// As an agent, the tool receives the task as JSON, or as plain text if the task is a string.
#[async_trait]
impl Agent for AgenticTool {
    fn name(&self) -> &str {
        self.definition.name()
    }

    fn description(&self) -> &str {
        &self.definition.description
    }

    async fn run(&self, task: Value, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let input = match task {
            Value::String(text) => text,
            other => other.to_string(),
        };
        run_agent(self, &input, context).await
    }
}

/// Returns the input schema for parameters. If a parameter is invalid, returns a schema that accepts any object.
fn input_schema(parameters: &[Parameter]) -> Value {
    Parameter::object_schema(parameters.iter().cloned()).unwrap_or_else(|_| json!({ "type": "object" }))
}
