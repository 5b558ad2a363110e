//! A tool whose body is a loop of its own.

mod run;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::agent_port::Agent;
use super::builder::ConversationBuilder;
use super::observer::Observer;
use super::policy::LoopLimits;
use super::process::Budget;
use crate::injection::{Chaining, InjectionStrategy, MachineState, Playbook, Reference, StateMachine, StrategyChain};
use crate::model::{ChatModel, ChatOptions, ModelChoice};
use toolwit_core::Error;
use toolwit_core::{
    Arguments, InputValidator, Parameter, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolObject, ToolResult,
};

/// The argument of an agentic tool that declares no parameters.
const TASK: &str = "task";

/// A tool that asks a model to do its work with tools of its own. From outside it is a tool like any other.
///
/// The loop inside has its own model, limits and history. It shares the context, the user and the blackboard with the conversation
/// that calls it, and what it uses is charged to that conversation's budget. Each `with_` method leaves the original as it is and
/// gives a copy.
///
/// ```
/// use toolwit_agent::model::ModelChoice;
/// use toolwit_agent::AgenticTool;
/// use toolwit_core::{Parameter, Tool};
///
/// # fn example(add: impl Tool + 'static, multiply: impl Tool + 'static) -> impl Tool {
/// let calculator = AgenticTool::new("calculator", "Works out sums.")
///     .with_tool(add)
///     .with_tool(multiply)
///     .with_parameter(Parameter::string("expression", "What to work out"))
///     .with_parameter(Parameter::integer("precision", "Decimal places").optional())
///     .with_model_choice(ModelChoice::role("smart"));
/// # calculator }
/// ```
#[derive(Clone)]
pub struct AgenticTool {
    definition: ToolDefinition,
    parameters: Vec<Parameter>,
    plan: Plan,
}

/// What the loop inside is made of.
#[derive(Clone)]
struct Plan {
    system: SystemPrompt,
    model: Option<ModelChoice>,
    options: ChatOptions,
    limits: LoopLimits,
    budget: Budget,
    tools: Vec<Arc<dyn Tool>>,
    references: Vec<Reference>,
    strategies: StrategyChain,
    /// A playbook or a state machine.
    order: Option<Arc<Order>>,
    chaining: Chaining,
    observers: Vec<Arc<dyn Observer>>,
    captures_nested_artifacts: bool,
    /// Why it can never run: a tool object or a parameter that is wrong.
    failed: Option<Error>,
}

/// Puts a playbook or a state machine into the conversation inside.
type Order = dyn Fn(ConversationBuilder) -> ConversationBuilder + Send + Sync;

/// Makes the instructions of a loop from the call's context and its input.
type MakeSystemPrompt = dyn Fn(&ToolContext, &str) -> String + Send + Sync;

/// The instructions of the loop inside.
#[derive(Clone)]
enum SystemPrompt {
    /// Made of the tool's description.
    FromDescription,
    Fixed(Arc<str>),
    Made(Arc<MakeSystemPrompt>),
}

impl AgenticTool {
    /// Makes an agentic tool without inner tools. It takes one text, the `task`, until it is given parameters.
    #[must_use]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let name = name.into();
        let task = Parameter::string(TASK, "What to do, with all that is needed to do it");
        let definition = ToolDefinition::new(ToolId::native(&name), name, description, schema(&[task]));
        Self {
            definition,
            parameters: Vec::new(),
            plan: Plan {
                system: SystemPrompt::FromDescription,
                model: None,
                options: ChatOptions::default(),
                limits: LoopLimits::default(),
                budget: Budget::none(),
                tools: Vec::new(),
                references: Vec::new(),
                strategies: StrategyChain::new(),
                order: None,
                chaining: Chaining::new(),
                observers: Vec::new(),
                captures_nested_artifacts: false,
                failed: None,
            },
        }
    }

    /// Asks this model. By default the model of the conversation that calls is asked.
    #[must_use]
    pub fn with_model(&self, model: impl ChatModel + 'static) -> Self {
        self.with_model_choice(ModelChoice::Model(Arc::new(model)))
    }

    /// Asks the model of this choice among those of the conversation that calls.
    #[must_use]
    pub fn with_model_choice(&self, choice: impl Into<ModelChoice>) -> Self {
        self.planned(|plan| plan.model = Some(choice.into()))
    }

    /// Sets how the model answers.
    #[must_use]
    pub fn with_options(&self, options: ChatOptions) -> Self {
        self.planned(|plan| plan.options = options)
    }

    /// Sets the instructions. By default they are made of the description.
    #[must_use]
    pub fn with_system_prompt(&self, instructions: impl Into<String>) -> Self {
        self.planned(|plan| plan.system = SystemPrompt::Fixed(instructions.into().into()))
    }

    /// Makes the instructions anew for each call, from its context and its input.
    #[must_use]
    pub fn with_system_prompt_from(&self, make: impl Fn(&ToolContext, &str) -> String + Send + Sync + 'static) -> Self {
        self.planned(|plan| plan.system = SystemPrompt::Made(Arc::new(make)))
    }

    /// Sets the most inferences of a call; 20 by default.
    #[must_use]
    pub fn with_iterations_max(&self, iterations_max: u32) -> Self {
        self.planned(|plan| plan.limits.iterations_max = iterations_max)
    }

    /// Sets how far the loop of a call may go.
    #[must_use]
    pub fn with_limits(&self, limits: LoopLimits) -> Self {
        self.planned(|plan| plan.limits = limits)
    }

    /// Bounds what a call may use, beside what is left of the budgets around it.
    #[must_use]
    pub fn with_budget(&self, budget: Budget) -> Self {
        self.planned(|plan| plan.budget = budget)
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with_parameter(&self, parameter: Parameter) -> Self {
        let mut copy = self.clone();
        copy.parameters.push(parameter);
        match Parameter::schema(copy.parameters.clone()) {
            Ok(schema) => copy.definition.input_schema = Arc::new(schema),
            Err(error) => copy.plan.fail(error),
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
        self.planned(|plan| plan.tools.extend(tools))
    }

    /// Adds the methods of an object as inner tools; none when it has none.
    #[must_use]
    pub fn with_tool_object(&self, object: impl Into<ToolObject>) -> Self {
        self.planned(|plan| match object.into().tools_if_any() {
            Ok(tools) => plan.tools.extend(tools),
            Err(error) => plan.fail(error),
        })
    }

    /// Asks one more strategy after each result inside. Entities are discovered without one.
    #[must_use]
    pub fn with_strategy(&self, strategy: impl InjectionStrategy + 'static) -> Self {
        self.planned(|plan| plan.strategies = plan.strategies.clone().then(strategy))
    }

    /// Adds the tools of a playbook, which locks them until their conditions hold. It takes the place of an earlier playbook or
    /// state machine.
    #[must_use]
    pub fn with_playbook(&self, playbook: Playbook) -> Self {
        self.planned(|plan| plan.order = Some(Arc::new(move |builder| builder.playbook(playbook.clone()))))
    }

    /// Adds the tools of a state machine, which lets each be called in its states. It takes the place of an earlier playbook or
    /// state machine, so that a copy may [start in another state](StateMachine::starting_in).
    #[must_use]
    pub fn with_state_machine<S: MachineState>(&self, machine: StateMachine<S>) -> Self {
        self.planned(|plan| plan.order = Some(Arc::new(move |builder| builder.state_machine(machine.clone()))))
    }

    /// Follows objects that tools inside return. What they bring can be called at once, whatever a playbook or a state machine
    /// locks.
    #[must_use]
    pub fn with_chaining(&self, chaining: Chaining) -> Self {
        self.planned(|plan| plan.chaining = plan.chaining.clone().and(chaining))
    }

    /// Adds what there is to know inside, and the tools that go with it.
    #[must_use]
    pub fn with_reference(&self, reference: &Reference) -> Self {
        self.planned(|plan| plan.references.push(reference.clone()))
    }

    /// Tells an observer what happens inside.
    #[must_use]
    pub fn with_observer(&self, observer: Arc<dyn Observer>) -> Self {
        self.planned(|plan| plan.observers.push(observer))
    }

    /// Says whether what agentic tools inside hand over comes out too. By default it stays inside; what ordinary tools hand
    /// over always comes out.
    #[must_use]
    pub fn with_nested_artifacts(&self, captured: bool) -> Self {
        self.planned(|plan| plan.captures_nested_artifacts = captured)
    }

    fn planned(&self, change: impl FnOnce(&mut Plan)) -> Self {
        let mut copy = self.clone();
        change(&mut copy.plan);
        copy
    }

    /// Writes the input as the model inside reads it.
    fn input(&self, arguments: &Arguments) -> String {
        match arguments.get(TASK) {
            Some(Value::String(task)) if self.parameters.is_empty() => task.clone(),
            _ => Value::Object(arguments.clone()).to_string(),
        }
    }
}

impl Plan {
    fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
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
        run::run(self, &self.input(&arguments), context).await
    }

    fn is_agent(&self) -> bool {
        true
    }
}

/// Called by another agent, it reads the task as JSON, or as it stands when it is a text.
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
        run::run(self, &input, context).await
    }
}

fn schema(parameters: &[Parameter]) -> Value {
    Parameter::schema(parameters.iter().cloned()).unwrap_or_else(|_| json!({ "type": "object" }))
}
