//! The builder of a conversation.

use std::sync::Arc;

use crate::event::{Event, Observer, Observers};
use crate::group::ToolGroup;
use crate::injection::{
    Chaining, EntityTools, InjectionStrategy, MachineState, Playbook, Reference, RegisteredTools, SEARCH_TOOLS,
    StateMachine, StrategyChain,
};
use crate::limits::LoopLimits;
use crate::model::{ChatModel, ChatOptions, Delivery, ModelChoice, Models};
use crate::process::Budget;
use crate::state::READ_RESULT;
use crate::toolbox::CALL_TOOL;
use toolwit_core::Error;
use toolwit_core::{
    Blackboard, Decorator, EntityMethods, Message, OutputSink, Tool, ToolContext, ToolObject, ToolRegistry,
    ToolSelector,
};

/// The names that only tools of the host may have.
pub const RESERVED_TOOL_NAMES: [&str; 3] = [READ_RESULT, SEARCH_TOOLS, CALL_TOOL];

/// Builds a [`Conversation`](super::Conversation). Only the model is required. By default, the conversation has no tools,
/// discovers entities, and uses the default [`LoopLimits`].
///
/// ```
/// use async_trait::async_trait;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolwit_agent::model::{ChatModel, ChatRequest, ChatResponse, ModelError};
/// use toolwit_agent::Conversation;
/// use toolwit_core::{NativeTool, ToolCall};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// /// Stands for a language model: calls a tool, then repeats its result.
/// struct Parrot;
///
/// #[async_trait]
/// impl ChatModel for Parrot {
///     fn name(&self) -> &str { "parrot" }
///
///     async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
///         let last = &request.messages[request.messages.len() - 1];
///         let call = ToolCall { id: "1".into(), name: "add".into(), arguments: r#"{"a": 1, "b": 2}"#.into() };
///         let is_question = last.content().ends_with('?');
///         Ok(ChatResponse::new(last.content(), if is_question { vec![call] } else { vec![] }))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let add = NativeTool::typed("add", "Adds two numbers.", |add: Add, _context| async move {
///     add.a.checked_add(add.b).ok_or("the sum is too large")
/// })?;
/// let mut conversation = Conversation::builder().model(Parrot).tool(add).build()?;
/// let outcome = conversation.run("What is 1 + 2?").await?;
/// assert_eq!(outcome.text(), "3");
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct ConversationBuilder {
    pub(super) model: Option<ModelChoice>,
    pub(super) models: Option<Arc<Models>>,
    pub(super) goal: Option<String>,
    pub(super) budget: Budget,
    pub(super) drops_nested_artifacts: bool,
    /// The first error of a setter, which `build` returns.
    pub(super) failed: Option<Error>,
    pub(super) system: Option<String>,
    /// Instructions about the use of tools, after `system`.
    pub(super) guidance: Option<String>,
    /// Texts of references, after `guidance`.
    pub(super) references: Vec<String>,
    pub(super) history: Vec<Message>,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) decorators: Vec<(ToolSelector, Arc<dyn Decorator>)>,
    pub(super) strategies: Strategies,
    pub(super) chaining: Chaining,
    pub(super) delivery: Delivery,
    /// The events to resume from.
    pub(super) log: Vec<Event>,
    pub(super) context: ToolContext,
    pub(super) options: ChatOptions,
    pub(super) limits: LoopLimits,
    pub(super) observers: Observers,
}

/// The strategies of a conversation. By default, facades reveal their tools and entities are discovered.
pub(super) struct Strategies(pub(super) StrategyChain);

impl Default for Strategies {
    fn default() -> Self {
        Self(StrategyChain::with_unfolding().then(EntityTools))
    }
}

impl ConversationBuilder {
    /// Sets the model. An `Arc` of a model is a model too.
    #[must_use]
    pub fn model(mut self, model: impl ChatModel + 'static) -> Self {
        self.model = Some(ModelChoice::Model(Arc::new(model)));
        self
    }

    /// Sets the models among which this conversation and its agents choose. Without a choice, the default model is used.
    #[must_use]
    pub fn models(mut self, models: Models) -> Self {
        self.models = Some(Arc::new(models));
        self
    }

    /// Chooses one of the [`models`](Self::models) by name, by role, or automatically.
    #[must_use]
    pub fn model_choice(mut self, choice: impl Into<ModelChoice>) -> Self {
        self.model = Some(choice.into());
        self
    }

    /// Sets the goal, which tools and agents can read. By default it is the first user message.
    #[must_use]
    pub fn goal(mut self, goal: impl Into<String>) -> Self {
        self.goal = Some(goal.into());
        self
    }

    /// Limits the total usage of all runs of the conversation, including nested agents.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Omits the artifacts of agentic tools from the outcome.
    #[must_use]
    pub(crate) fn without_nested_artifacts(mut self) -> Self {
        self.drops_nested_artifacts = true;
        self
    }

    /// Sets the system message.
    #[must_use]
    pub fn system(mut self, instructions: impl Into<String>) -> Self {
        self.system = Some(instructions.into());
        self
    }

    /// Continues an earlier history. Its unanswered calls are answered as cancelled.
    #[must_use]
    pub fn history(mut self, messages: Vec<Message>) -> Self {
        self.history = messages;
        self
    }

    /// Adds a tool. It replaces an earlier tool with the same id.
    #[must_use]
    pub fn tool(self, tool: impl Tool + 'static) -> Self {
        self.tools([Arc::new(tool) as Arc<dyn Tool>])
    }

    /// Adds the methods of an object as tools. The [`ToolObject`] determines their names. [`build`](Self::build) fails if the
    /// object has no methods.
    #[must_use]
    pub fn tool_object(mut self, object: impl Into<ToolObject>) -> Self {
        match object.into().tools() {
            Ok(tools) => self.tools(tools),
            Err(error) => {
                self.failed.get_or_insert(error);
                self
            }
        }
    }

    /// Adds tools. Native tools get their names before plugin tools, regardless of the order in which they are added.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds the tools of a group.
    #[must_use]
    pub fn group(self, group: ToolGroup) -> Self {
        self.tools(group.tools)
    }

    /// Applies a decorator to the selected tools, whatever their way into the conversation: from the start, behind a facade, from
    /// a strategy or a search, after a resume, or from a plugin file that was replaced. Decorators are applied in the order of
    /// these calls, each around those before it.
    ///
    /// [`build`](Self::build) fails if no tool is selected, unless the selector is [late](ToolSelector::later). Methods of
    /// entities are selected by their own id. They also have the [guards](Decorator::is_guard), such as an approval, of the tool that returned the
    /// entity.
    ///
    /// ```
    /// use toolwit_agent::Conversation;
    /// use toolwit_core::{Approval, ApprovalGate, ApprovalRequest, ToolSelector};
    ///
    /// let ask = |request: &ApprovalRequest| match request.arguments.get("amount").and_then(|amount| amount.as_u64()) {
    ///     Some(0..100) => Approval::Approved,
    ///     _ => Approval::Denied { reason: "only amounts below 100".to_owned() },
    /// };
    /// let builder = Conversation::builder().decorate(ToolSelector::later("bank#pay"), ApprovalGate::new(ask));
    /// ```
    #[must_use]
    pub fn decorate(mut self, tools: impl Into<ToolSelector>, decorator: impl Decorator + 'static) -> Self {
        self.decorators.push((tools.into(), Arc::new(decorator)));
        self
    }

    /// Adds the tools of a registry, and follows its changes while the conversation runs.
    #[must_use]
    pub fn registry(self, registry: &ToolRegistry) -> Self {
        self.strategy(RegisteredTools::new(registry.clone()))
    }

    /// Appends a reference to the system message and adds its tools. [`Reference::facade`] offers it as one tool instead.
    #[must_use]
    pub fn reference(mut self, reference: &Reference) -> Self {
        self.references.push(reference.prompt());
        self.tools(reference.direct_tools().iter().cloned())
    }

    /// Adds a strategy after the others, with its initial tools and its guidance.
    #[must_use]
    pub fn strategy(mut self, strategy: impl InjectionStrategy + 'static) -> Self {
        self.tools.extend(strategy.initial_tools());
        if let Some(guidance) = strategy.guidance() {
            self.guidance.get_or_insert_with(|| guidance.to_owned());
        }
        self.strategies = Strategies(self.strategies.0.then(strategy));
        self
    }

    /// Sets the instructions about the use of tools. They replace the guidance of a strategy; an empty text omits them.
    #[must_use]
    pub fn guidance(mut self, guidance: impl Into<String>) -> Self {
        self.guidance = Some(guidance.into());
        self
    }

    /// Replaces all strategies, including the default ones. Start with [`StrategyChain::with_unfolding`] to keep facades working.
    #[must_use]
    pub fn strategies(mut self, strategies: StrategyChain) -> Self {
        self.strategies = Strategies(strategies);
        self
    }

    /// Resumes a conversation from its events: the same tools are visible, with the same names and in the same order. A prefix
    /// of the events creates a branch. Set the same tools, strategies and [`history`](Self::history) as before.
    ///
    /// Open facades stay open. Objects of the earlier process no longer exist: calls of their methods fail until the object
    /// is returned again.
    #[must_use]
    pub fn resume(mut self, events: impl IntoIterator<Item = Event>) -> Self {
        self.log = events.into_iter().collect();
        self
    }

    /// Chains tools to returned objects: the methods of a type are declared from the start, and act on the last object.
    #[must_use]
    pub fn chaining(mut self, chaining: Chaining) -> Self {
        self.chaining = self.chaining.and(chaining);
        self
    }

    /// Chains tools to the objects of a Rust type. See [`chaining`](Self::chaining).
    #[must_use]
    pub fn chain_from<T: Send + Sync + 'static>(self, methods: &EntityMethods<T>) -> Self {
        self.chaining(Chaining::new().with_type(methods))
    }

    /// Chains tools to objects of any type: the tools of the last object replace those of the previous object.
    #[must_use]
    pub fn chain_from_any(self) -> Self {
        self.chaining(Chaining::new().with_any_type())
    }

    /// Adds a playbook with its tools, which it locks and unlocks.
    #[must_use]
    pub fn playbook(self, playbook: Playbook) -> Self {
        self.tools(playbook.tools()).strategy(playbook)
    }

    /// Adds a state machine with its tools, which it locks and unlocks.
    #[must_use]
    pub fn state_machine<S: MachineState>(self, machine: StateMachine<S>) -> Self {
        self.tools(machine.tools()).strategy(machine)
    }

    /// Sets how injected tools are delivered to the model.
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Removes all strategies, including the default ones, so that the tools never change.
    #[must_use]
    pub fn without_strategies(mut self) -> Self {
        self.strategies = Strategies(StrategyChain::new());
        self
    }

    /// Sets the context that tools receive and the model does not: tenant, channel, the token that cancels all turns. The
    /// values of a turn take precedence.
    #[must_use]
    pub fn context(mut self, context: ToolContext) -> Self {
        self.context = context;
        self
    }

    /// Sets the output for messages to the user.
    #[must_use]
    pub fn output(mut self, output: Arc<dyn OutputSink>) -> Self {
        self.context = self.context.with_output(output);
        self
    }

    /// Sets the blackboard that the tools share, including plugins. The default is an empty
    /// [`MemoryBlackboard`](toolwit_core::MemoryBlackboard).
    #[must_use]
    pub fn blackboard(mut self, blackboard: Arc<dyn Blackboard>) -> Self {
        self.context = self.context.with_blackboard(blackboard);
        self
    }

    /// Sets the options of the model.
    #[must_use]
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the limits of a run.
    #[must_use]
    pub fn limits(mut self, limits: LoopLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the iteration limit of a run. The other limits are unchanged.
    #[must_use]
    pub fn iterations_max(mut self, iterations_max: u32) -> Self {
        self.limits.iterations_max = iterations_max;
        self
    }

    /// Adds an observer.
    #[must_use]
    pub fn observer(self, observer: impl Observer + 'static) -> Self {
        self.shared_observer(Arc::new(observer))
    }

    /// Adds an observer that is shared with other owners.
    #[must_use]
    pub fn shared_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.add(observer);
        self
    }
}
