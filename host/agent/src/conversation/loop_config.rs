//! The configuration of a loop.

use std::sync::Arc;

use super::object_tools::add_object_tools;
use crate::event::Observer;
use crate::group::ToolGroups;
use crate::injection::{
    Chaining, EntityTools, InjectionStrategy, MachineState, Playbook, Reference, StateMachine, StrategyChain,
};
use crate::limits::LoopLimits;
use crate::model::{ChatModel, ChatOptions, ModelChoice, Models, ToolDelivery};
use crate::process::Budget;
use toolwit_core::Error;
use toolwit_core::{Approvals, Decorator, Tool, ToolObject, ToolSelector};

/// The configuration of a loop: model, prompt, tools, strategies, limits and observers.
///
/// Conversations and agentic tools share this type: see
/// [`ConversationBuilder::config`](super::ConversationBuilder::config) and
/// [`AgenticTool::with_config`](crate::AgenticTool::with_config). Clones share the tools and the model. By default, a loop has
/// no tools, reveals the tools of facades, and discovers entities.
///
/// ```
/// use toolwit_agent::model::ScriptedModel;
/// use toolwit_agent::{AgenticTool, Agents, Conversation, LoopConfig, Subagent};
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// # #[derive(Deserialize, JsonSchema)]
/// # struct Topic { name: String }
/// # fn example(search: impl toolwit_core::Tool + 'static) -> Result<(), toolwit_core::Error> {
/// let config = LoopConfig::new()
///     .with_model(ScriptedModel::new().answer("Tea is a drink."))
///     .with_tool(search)
///     .with_iterations_max(5);
/// let agent = AgenticTool::new("researcher", "Answers questions.").with_config(config.clone());
/// let subagent = Subagent::of(agent.clone()).consuming::<Topic>()?;
/// let conversation = Conversation::builder().config(config).tool(subagent).build()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct LoopConfig {
    pub(super) model: Option<ModelChoice>,
    pub(super) models: Option<Arc<Models>>,
    pub(crate) system: Option<String>,
    /// Instructions about the use of tools, after `system`.
    pub(super) guidance: Option<String>,
    /// Prompts of [`Reference`]s, after `guidance`.
    pub(super) reference_prompts: Vec<String>,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) groups: Option<Arc<ToolGroups>>,
    pub(super) roles: Vec<String>,
    pub(super) decorators: Vec<(ToolSelector, Arc<dyn Decorator>)>,
    /// Guards around all decorators. A guard may select no tool.
    pub(super) guards: Vec<(ToolSelector, Arc<dyn Decorator>)>,
    pub(super) strategies: StrategyChain,
    pub(super) playbook: Option<Workflow>,
    pub(super) state_machine: Option<Workflow>,
    pub(super) chaining: Chaining,
    pub(super) delivery: ToolDelivery,
    pub(super) options: ChatOptions,
    pub(super) limits: LoopLimits,
    pub(super) budget: Budget,
    pub(super) approvals: Option<Arc<Approvals>>,
    pub(super) observers: Vec<Arc<dyn Observer>>,
    /// Whether the observers receive the events of agents inside the loop.
    pub(super) has_nested_events: bool,
    /// Whether the outcome contains the artifacts of nested agentic tools. With `None`, the outcome of a conversation
    /// contains them, and the result of an agentic tool does not.
    pub(crate) has_nested_artifacts: Option<bool>,
    /// The first error of a setter. Building returns it.
    pub(super) setter_error: Option<Error>,
}

/// A playbook or a state machine as a strategy, and its tools.
#[derive(Clone)]
pub(super) struct Workflow {
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) strategy: StrategyChain,
}

impl Default for LoopConfig {
    fn default() -> Self {
        Self {
            model: None,
            models: None,
            system: None,
            guidance: None,
            reference_prompts: Vec::new(),
            tools: Vec::new(),
            groups: None,
            roles: Vec::new(),
            decorators: Vec::new(),
            guards: Vec::new(),
            strategies: StrategyChain::with_unfolding().then(EntityTools),
            playbook: None,
            state_machine: None,
            chaining: Chaining::new(),
            delivery: ToolDelivery::default(),
            options: ChatOptions::default(),
            limits: LoopLimits::default(),
            budget: Budget::default(),
            approvals: None,
            observers: Vec::new(),
            has_nested_events: false,
            has_nested_artifacts: None,
            setter_error: None,
        }
    }
}

impl LoopConfig {
    /// Creates the default configuration.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the model. An `Arc` of a model is a model too.
    #[must_use]
    pub fn with_model(self, model: impl ChatModel + 'static) -> Self {
        self.with_model_choice(ModelChoice::Model(Arc::new(model)))
    }

    /// Chooses one of the [`models`](Self::with_models) by name, by role, or automatically.
    #[must_use]
    pub fn with_model_choice(mut self, choice: impl Into<ModelChoice>) -> Self {
        self.model = Some(choice.into());
        self
    }

    /// Sets the models among which the loop and its agents choose. Without a choice, the default model is used.
    #[must_use]
    pub fn with_models(mut self, models: Models) -> Self {
        self.models = Some(Arc::new(models));
        self
    }

    /// Sets the system message.
    #[must_use]
    pub fn with_system(mut self, instructions: impl Into<String>) -> Self {
        self.system = Some(instructions.into());
        self
    }

    /// Sets the instructions about the use of tools. They replace the guidance of a strategy; an empty text omits them.
    #[must_use]
    pub fn with_guidance(mut self, guidance: impl Into<String>) -> Self {
        self.guidance = Some(guidance.into());
        self
    }

    /// Adds a reference: the instructions and tools for a subject. The instructions are appended to the system message.
    /// [`Reference::facade`] offers the reference as one tool instead.
    #[must_use]
    pub fn with_reference(mut self, reference: &Reference) -> Self {
        self.reference_prompts.push(reference.prompt());
        self.with_tools(reference.direct_tools().iter().cloned())
    }

    /// Adds a tool. It replaces an earlier tool with the same id.
    #[must_use]
    pub fn with_tool(self, tool: impl Tool + 'static) -> Self {
        self.with_tools([Arc::new(tool) as Arc<dyn Tool>])
    }

    /// Adds tools. Native tools and tools of the host have precedence for names, in whatever order the tools are added.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds the methods of an object as tools, with the names of the [`ToolObject`]. Building fails if the object has no
    /// methods, or if a tool of the object has the same id as an earlier tool. Objects of one type therefore need different ids
    /// or names.
    #[must_use]
    pub fn with_tool_object(self, object: impl Into<ToolObject>) -> Self {
        self.with_object_tools(object.into().tools())
    }

    /// Adds the tools of an object, or stores the error, so that building returns it.
    pub(crate) fn with_object_tools(mut self, tools: Result<Vec<Arc<dyn Tool>>, Error>) -> Self {
        if let Err(error) = tools.and_then(|tools| add_object_tools(&mut self.tools, tools)) {
            self.setter_error.get_or_insert(error);
        }
        self
    }

    /// Sets the tool groups among which the loop and its agents choose by role. By default they are those of the calling
    /// conversation.
    #[must_use]
    pub fn with_groups(mut self, groups: ToolGroups) -> Self {
        self.groups = Some(Arc::new(groups));
        self
    }

    /// Adds the tools of a role. They are resolved when a turn begins; building only checks that the role exists.
    #[must_use]
    pub fn with_role(mut self, role: impl Into<String>) -> Self {
        self.roles.push(role.into());
        self
    }

    /// Applies a decorator to the selected tools, however they enter the loop; see
    /// [`ConversationBuilder::decorate`](super::ConversationBuilder::decorate).
    #[must_use]
    pub fn with_decorator(mut self, tools: impl Into<ToolSelector>, decorator: impl Decorator + 'static) -> Self {
        self.decorators.push((tools.into(), Arc::new(decorator)));
        self
    }

    /// Applies a guard around all decorators; see [`ConversationBuilder::guard`](super::ConversationBuilder::guard).
    #[must_use]
    pub fn with_guard(mut self, tools: impl Into<ToolSelector>, guard: Arc<dyn Decorator>) -> Self {
        self.guards.push((tools.into(), guard));
        self
    }

    /// Adds a strategy after the others, and its initial tools. Its guidance applies unless guidance is already set.
    #[must_use]
    pub fn with_strategy(mut self, strategy: impl InjectionStrategy + 'static) -> Self {
        self.add_tools_and_guidance_of(&strategy);
        self.strategies = self.strategies.then(strategy);
        self
    }

    fn add_tools_and_guidance_of(&mut self, strategy: &dyn InjectionStrategy) {
        self.tools.extend(strategy.initial_tools());
        if let Some(guidance) = strategy.guidance() {
            self.guidance.get_or_insert_with(|| guidance.to_owned());
        }
    }

    /// Replaces all strategies, including the default ones. Start with [`StrategyChain::with_unfolding`] to keep facades
    /// working. The initial tools of the new strategies are added, and their guidance applies unless guidance is already set.
    /// Tools that earlier strategies added stay, and so do the playbook, the state machine and the chaining.
    #[must_use]
    pub fn with_strategies(mut self, strategies: StrategyChain) -> Self {
        self.add_tools_and_guidance_of(&strategies);
        self.strategies = strategies;
        self
    }

    /// Sets the playbook and adds its tools. It replaces an earlier playbook and its tools.
    #[must_use]
    pub fn with_playbook(mut self, playbook: Playbook) -> Self {
        self.playbook = Some(Workflow {
            tools: playbook.tools(),
            strategy: StrategyChain::new().then(playbook),
        });
        self
    }

    /// Sets the state machine and adds its tools. It replaces an earlier state machine and its tools, so that a copy of the
    /// configuration can [start in another state](StateMachine::with_initial_state).
    #[must_use]
    pub fn with_state_machine<S: MachineState>(mut self, machine: StateMachine<S>) -> Self {
        self.state_machine = Some(Workflow {
            tools: machine.tools(),
            strategy: StrategyChain::new().then(machine),
        });
        self
    }

    /// Chains tools to returned objects: the methods of a type are declared from the start, and act on the object that a result
    /// returned last. A playbook or a state machine affects a chained tool only if it refers to the method itself.
    #[must_use]
    pub fn with_chaining(mut self, chaining: Chaining) -> Self {
        self.chaining = self.chaining.and(chaining);
        self
    }

    /// Sets how injected tools are delivered to the model.
    #[must_use]
    pub fn with_delivery(mut self, delivery: ToolDelivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Sets the options of the model.
    #[must_use]
    pub fn with_options(mut self, options: ChatOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the limits of a run.
    #[must_use]
    pub fn with_limits(mut self, limits: LoopLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the iteration limit of a run; 20 by default. The other limits are unchanged.
    #[must_use]
    pub fn with_iterations_max(mut self, iterations_max: u32) -> Self {
        self.limits.iterations_max = iterations_max;
        self
    }

    /// Sets the estimated size of a request, in tokens, beyond which a summary by the model replaces the older messages of the
    /// history. The other limits are unchanged.
    #[must_use]
    pub fn with_context_tokens_max(mut self, tokens: u64) -> Self {
        self.limits.context_tokens_max = Some(tokens);
        self
    }

    /// Limits the total usage of all runs, including nested agents, in addition to the outer budgets.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the approvals. They determine which calls of the loop, of its plugins and of its agents need an approval, and which
    /// approver decides. The approvals of an outer conversation apply in addition. By default, the loop itself requires no approval.
    #[must_use]
    pub fn with_approvals(mut self, approvals: Arc<Approvals>) -> Self {
        self.approvals = Some(approvals);
        self
    }

    /// Adds an observer.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Sets whether the observers receive the events of agents inside the loop too, at any depth. By default they do not.
    /// The origin of an event identifies the agent.
    #[must_use]
    pub fn with_nested_events(mut self, are_forwarded: bool) -> Self {
        self.has_nested_events = are_forwarded;
        self
    }

    /// Sets whether the outcome contains the artifacts of nested agentic tools. By default, the outcome of a conversation
    /// contains them, and the result of an agentic tool does not. Both contain the artifacts of other tools.
    #[must_use]
    pub fn with_nested_artifacts(mut self, are_included: bool) -> Self {
        self.has_nested_artifacts = Some(are_included);
        self
    }
}
