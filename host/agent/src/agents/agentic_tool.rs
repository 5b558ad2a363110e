//! Agentic tools: tools that run their own loop.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::agent::Agent;
use super::agentic_run::run_agent;
use super::inner_loop::{InnerLoop, SystemPrompt};
use crate::conversation::add_object_tools;
use crate::event::Observer;
use crate::injection::{Chaining, InjectionStrategy, MachineState, Playbook, Reference, StateMachine, StrategyChain};
use crate::limits::LoopLimits;
use crate::model::{ChatModel, ChatOptions, ModelChoice};
use crate::process::Budget;
use toolwit_core::{
    Arguments, InputValidator, Parameter, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolObject, ToolResult,
};

/// The argument of an agentic tool without declared parameters.
const TASK: &str = "task";

/// A tool that runs a model with its own tools. To its callers it is a tool like any other.
///
/// The inner loop has its own model, limits and history. It shares the context, the user and the blackboard with the calling
/// conversation, and its usage is charged to the budget of that conversation. Each `with_` method returns a changed copy and
/// leaves the original unchanged.
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
    definition: ToolDefinition,
    parameters: Vec<Parameter>,
    inner: InnerLoop,
}

impl AgenticTool {
    /// Creates an agentic tool without inner tools. Without parameters it has one text argument, the `task`.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let name = name.into();
        let task = Parameter::string(TASK, "The task, with all information that it requires");
        let definition = ToolDefinition::new(ToolId::native(&name), name, description, schema(&[task]));
        Self {
            definition,
            parameters: Vec::new(),
            inner: InnerLoop {
                system: SystemPrompt::FromDescription,
                model: None,
                options: ChatOptions::default(),
                limits: LoopLimits::default(),
                budget: Budget::default(),
                tools: Vec::new(),
                references: Vec::new(),
                strategies: StrategyChain::new(),
                workflow: None,
                chaining: Chaining::new(),
                observers: Vec::new(),
                captures_nested_artifacts: false,
                failed: None,
            },
        }
    }

    /// Sets the model. By default it is the model of the calling conversation.
    #[must_use]
    pub fn with_model(&self, model: impl ChatModel + 'static) -> Self {
        self.with_model_choice(ModelChoice::Model(Arc::new(model)))
    }

    /// Chooses one of the models of the calling conversation.
    #[must_use]
    pub fn with_model_choice(&self, choice: impl Into<ModelChoice>) -> Self {
        self.changed(|inner| inner.model = Some(choice.into()))
    }

    /// Sets the options of the model.
    #[must_use]
    pub fn with_options(&self, options: ChatOptions) -> Self {
        self.changed(|inner| inner.options = options)
    }

    /// Sets the system prompt. By default it is derived from the description.
    #[must_use]
    pub fn with_system_prompt(&self, instructions: impl Into<String>) -> Self {
        self.changed(|inner| inner.system = SystemPrompt::Fixed(instructions.into().into()))
    }

    /// Creates the system prompt for each call from its context and its input.
    #[must_use]
    pub fn with_system_prompt_from(&self, make: impl Fn(&ToolContext, &str) -> String + Send + Sync + 'static) -> Self {
        self.changed(|inner| inner.system = SystemPrompt::FromCall(Arc::new(make)))
    }

    /// Sets the iteration limit of a call; 20 by default.
    #[must_use]
    pub fn with_iterations_max(&self, iterations_max: u32) -> Self {
        self.changed(|inner| inner.limits.iterations_max = iterations_max)
    }

    /// Sets the limits of a call.
    #[must_use]
    pub fn with_limits(&self, limits: LoopLimits) -> Self {
        self.changed(|inner| inner.limits = limits)
    }

    /// Sets the budget of a call, in addition to the outer budgets.
    #[must_use]
    pub fn with_budget(&self, budget: Budget) -> Self {
        self.changed(|inner| inner.budget = budget)
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with_parameter(&self, parameter: Parameter) -> Self {
        let mut copy = self.clone();
        copy.parameters.push(parameter);
        match Parameter::schema(copy.parameters.clone()) {
            Ok(schema) => copy.definition.input_schema = Arc::new(schema),
            Err(error) => copy.inner.fail(error),
        }
        copy
    }

    /// Adds an inner tool.
    #[must_use]
    pub fn with_tool(&self, tool: impl Tool + 'static) -> Self {
        self.with_tools([Arc::new(tool) as Arc<dyn Tool>])
    }

    /// Adds inner tools.
    #[must_use]
    pub fn with_tools(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.changed(|inner| inner.tools.extend(tools))
    }

    /// Adds the methods of an object, if any, as inner tools.
    #[must_use]
    pub fn with_tool_object(&self, object: impl Into<ToolObject>) -> Self {
        self.changed(|inner| {
            let tools = object.into().tools_if_any();
            if let Err(error) = tools.and_then(|tools| add_object_tools(&mut inner.tools, tools)) {
                inner.fail(error);
            }
        })
    }

    /// Adds a strategy to the inner loop, after the default ones.
    #[must_use]
    pub fn with_strategy(&self, strategy: impl InjectionStrategy + 'static) -> Self {
        self.changed(|inner| inner.strategies = inner.strategies.clone().then(strategy))
    }

    /// Adds a playbook with its tools. It replaces an earlier playbook or state machine.
    #[must_use]
    pub fn with_playbook(&self, playbook: Playbook) -> Self {
        self.changed(|inner| inner.workflow = Some(Arc::new(move |builder| builder.playbook(playbook.clone()))))
    }

    /// Adds a state machine with its tools. It replaces an earlier playbook or state machine, so a copy can
    /// [start in another state](StateMachine::starting_in).
    #[must_use]
    pub fn with_state_machine<S: MachineState>(&self, machine: StateMachine<S>) -> Self {
        self.changed(|inner| inner.workflow = Some(Arc::new(move |builder| builder.state_machine(machine.clone()))))
    }

    /// Chains tools to objects that inner tools return. A playbook or a state machine does not lock the chained tools.
    #[must_use]
    pub fn with_chaining(&self, chaining: Chaining) -> Self {
        self.changed(|inner| inner.chaining = inner.chaining.clone().and(chaining))
    }

    /// Adds a reference to the inner system prompt, with its tools.
    #[must_use]
    pub fn with_reference(&self, reference: &Reference) -> Self {
        self.changed(|inner| inner.references.push(reference.clone()))
    }

    /// Adds an observer of the inner loop.
    #[must_use]
    pub fn with_observer(&self, observer: Arc<dyn Observer>) -> Self {
        self.changed(|inner| inner.observers.push(observer))
    }

    /// Sets whether the result contains the artifacts of inner agentic tools. By default it does not. It always contains the
    /// artifacts of other inner tools.
    #[must_use]
    pub fn with_nested_artifacts(&self, is_captured: bool) -> Self {
        self.changed(|inner| inner.captures_nested_artifacts = is_captured)
    }

    fn changed(&self, change: impl FnOnce(&mut InnerLoop)) -> Self {
        let mut copy = self.clone();
        change(&mut copy.inner);
        copy
    }

    /// Returns the input as the prompt of the inner loop.
    fn input(&self, arguments: &Arguments) -> String {
        match arguments.get(TASK) {
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
        let check = InputValidator::of(&self.definition).map_err(ToolError::Operator)?;
        let arguments = check.check(arguments)?;
        run_agent(&self.inner, &self.definition, &self.input(&arguments), context).await
    }

    fn is_agent(&self) -> bool {
        true
    }
}

/// As an agent, it receives the task as JSON, or as plain text if the task is a string.
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
        run_agent(&self.inner, &self.definition, &input, context).await
    }
}

/// Returns the input schema of the parameters.
fn schema(parameters: &[Parameter]) -> Value {
    Parameter::schema(parameters.iter().cloned()).unwrap_or_else(|_| json!({ "type": "object" }))
}
