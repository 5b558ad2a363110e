//! How a conversation is described.

mod build;

use std::sync::Arc;

use super::event::Event;
use super::gateway::CALL_TOOL;
use super::group::ToolGroup;
use super::observer::{Observer, Observers};
use super::page::READ_RESULT;
use super::policy::LoopLimits;
use super::process::Budget;
use crate::injection::{
    Chaining, EntityTools, InjectionStrategy, MachineState, Playbook, Reference, SEARCH_TOOLS, StateMachine,
    StrategyChain,
};
use crate::model::{ChatModel, ChatOptions, Delivery, ModelChoice, Models};
use toolwit_core::Error;
use toolwit_core::{Blackboard, EntityMethods, Message, OutputSink, Tool, ToolContext, ToolObject};

/// Names that only the host's own tools may have.
pub const RESERVED_NAMES: [&str; 3] = [READ_RESULT, SEARCH_TOOLS, CALL_TOOL];

/// Describes a [`Conversation`](super::Conversation). Only the model must be said; by default there are no tools, entities are discovered, and
/// [`LoopLimits`] hold.
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
/// /// Stands for a language model: calls a tool, then repeats what it reads.
/// struct Parrot;
///
/// #[async_trait]
/// impl ChatModel for Parrot {
///     fn name(&self) -> &str { "parrot" }
///
///     async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
///         let last = &request.messages[request.messages.len() - 1];
///         let call = ToolCall { id: "1".into(), name: "add".into(), arguments: r#"{"a": 1, "b": 2}"#.into() };
///         let asked = last.content().ends_with('?');
///         Ok(ChatResponse::new(last.content(), if asked { vec![call] } else { vec![] }))
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
    model: Option<ModelChoice>,
    models: Option<Arc<Models>>,
    goal: Option<String>,
    budget: Budget,
    drops_nested_artifacts: bool,
    failed: Option<Error>,
    system: Option<String>,
    /// How to use the tools, after the instructions.
    guidance: Option<String>,
    /// What is said about subjects, after the instructions.
    references: Vec<String>,
    history: Vec<Message>,
    tools: Vec<Arc<dyn Tool>>,
    strategies: Strategies,
    chaining: Chaining,
    delivery: Delivery,
    log: Vec<Event>,
    context: ToolContext,
    options: ChatOptions,
    limits: LoopLimits,
    observers: Observers,
}

/// The strategies of a conversation. Facades unfold and entities are discovered unless someone says no.
struct Strategies(StrategyChain);

impl Default for Strategies {
    fn default() -> Self {
        Self(StrategyChain::with_unfolding().then(EntityTools))
    }
}

impl ConversationBuilder {
    /// Sets the model that is asked. An `Arc` of a model is a model too.
    #[must_use]
    pub fn model(mut self, model: impl ChatModel + 'static) -> Self {
        self.model = Some(ModelChoice::Model(Arc::new(model)));
        self
    }

    /// Gives the models among which this conversation and its agents choose. Without a choice the default one is asked.
    #[must_use]
    pub fn models(mut self, models: Models) -> Self {
        self.models = Some(Arc::new(models));
        self
    }

    /// Chooses among the [`models`](Self::models): by name, by role, automatically.
    #[must_use]
    pub fn model_choice(mut self, choice: impl Into<ModelChoice>) -> Self {
        self.model = Some(choice.into());
        self
    }

    /// Says what the conversation is to reach, for tools and agents that ask. By default it is the user's first message.
    #[must_use]
    pub fn goal(mut self, goal: impl Into<String>) -> Self {
        self.goal = Some(goal.into());
        self
    }

    /// Bounds what all runs of the conversation may use together, nested agents included.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Leaves what agentic tools hand over out of the outcome: it is theirs.
    #[must_use]
    pub(super) fn without_nested_artifacts(mut self) -> Self {
        self.drops_nested_artifacts = true;
        self
    }

    /// Sets the application's instructions, which come before everything else.
    #[must_use]
    pub fn system(mut self, instructions: impl Into<String>) -> Self {
        self.system = Some(instructions.into());
        self
    }

    /// Goes on with what was said before. Calls in it that nobody answered are answered as cancelled.
    #[must_use]
    pub fn history(mut self, messages: Vec<Message>) -> Self {
        self.history = messages;
        self
    }

    /// Adds a tool. One with the id of an earlier one takes its place.
    #[must_use]
    pub fn tool(self, tool: impl Tool + 'static) -> Self {
        self.tools([Arc::new(tool) as Arc<dyn Tool>])
    }

    /// Adds the methods of an object as tools, under the names that the [`ToolObject`] gives them. An object without any is an
    /// error of [`build`](Self::build).
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

    /// Adds tools. Tools written in Rust get their names before those of plugins, whatever the order.
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

    /// Tells the model about a subject, after the instructions, and adds its tools. As one tool it is
    /// [`Reference::facade`].
    #[must_use]
    pub fn reference(mut self, reference: &Reference) -> Self {
        self.references.push(reference.prompt());
        self.tools(reference.direct_tools().iter().cloned())
    }

    /// Adds a strategy after the existing ones, with its initial tools and its guidance.
    #[must_use]
    pub fn strategy(mut self, strategy: impl InjectionStrategy + 'static) -> Self {
        self.tools.extend(strategy.initial_tools());
        if let Some(guidance) = strategy.guidance() {
            self.guidance.get_or_insert_with(|| guidance.to_owned());
        }
        self.strategies = Strategies(self.strategies.0.then(strategy));
        self
    }

    /// Sets what the model is told about the use of its tools, in place of what would be said by itself. An empty text says
    /// nothing.
    #[must_use]
    pub fn guidance(mut self, guidance: impl Into<String>) -> Self {
        self.guidance = Some(guidance.into());
        self
    }

    /// Asks these strategies and no others, in place of the default ones. [`StrategyChain::with_unfolding`] is where to begin.
    #[must_use]
    pub fn strategies(mut self, strategies: StrategyChain) -> Self {
        self.strategies = Strategies(strategies);
        self
    }

    /// Goes on where the events of a conversation end: the same tools are visible, under the same names and in the same order.
    /// Of a prefix of the events it makes a branch. The tools, the strategies and the [`history`](Self::history) are to be
    /// those that the conversation had.
    ///
    /// Facades are open as they were. What lived in the other process, such as the objects behind methods, is gone: its tools
    /// say so when they are called, and work again once the object is returned again.
    #[must_use]
    pub fn resume(mut self, events: impl IntoIterator<Item = Event>) -> Self {
        self.log = events.into_iter().collect();
        self
    }

    /// Follows objects that tools return: the methods of a type are there from the start, and act on the one that came last.
    #[must_use]
    pub fn chaining(mut self, chaining: Chaining) -> Self {
        self.chaining = self.chaining.and(chaining);
        self
    }

    /// Follows the objects of a Rust type. See [`chaining`](Self::chaining).
    #[must_use]
    pub fn chain_from<T: Send + Sync + 'static>(self, methods: &EntityMethods<T>) -> Self {
        self.chaining(Chaining::new().with_type(methods))
    }

    /// Follows every object: the tools of the one that came last take the place of those before.
    #[must_use]
    pub fn chain_from_any(self) -> Self {
        self.chaining(Chaining::new().with_any_type())
    }

    /// Adds the tools of a playbook, and lets it lock them.
    #[must_use]
    pub fn playbook(self, playbook: Playbook) -> Self {
        self.tools(playbook.tools()).strategy(playbook)
    }

    /// Adds the tools of a state machine, and lets it lock them.
    #[must_use]
    pub fn state_machine<S: MachineState>(self, machine: StateMachine<S>) -> Self {
        self.tools(machine.tools()).strategy(machine)
    }

    /// Says how tools that come in reach the model.
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Drops all strategies, the default ones included: tools stay as they are.
    #[must_use]
    pub fn without_strategies(mut self) -> Self {
        self.strategies = Strategies(StrategyChain::new());
        self
    }

    /// Sets what reaches every tool and never the model: tenant, channel, the token that cancels all turns. A turn adds its
    /// own, which wins.
    #[must_use]
    pub fn context(mut self, context: ToolContext) -> Self {
        self.context = context;
        self
    }

    /// Sends what tools have to say to the user here.
    #[must_use]
    pub fn output(mut self, output: Arc<dyn OutputSink>) -> Self {
        self.context = self.context.with_output(output);
        self
    }

    /// Sets what the tools share, in place of an empty [`MemoryBlackboard`](crate::MemoryBlackboard). It reaches every call, those of plugins too.
    #[must_use]
    pub fn blackboard(mut self, blackboard: Arc<dyn Blackboard>) -> Self {
        self.context = self.context.with_blackboard(blackboard);
        self
    }

    /// Sets how the model answers.
    #[must_use]
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets how far a run may go.
    #[must_use]
    pub fn limits(mut self, limits: LoopLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the most inferences of a run; the other limits stay.
    #[must_use]
    pub fn iterations_max(mut self, iterations_max: u32) -> Self {
        self.limits.iterations_max = iterations_max;
        self
    }

    /// Tells one more observer what happens.
    #[must_use]
    pub fn observer(self, observer: impl Observer + 'static) -> Self {
        self.shared_observer(Arc::new(observer))
    }

    /// Tells one more observer what happens, which others hold too.
    #[must_use]
    pub fn shared_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.add(observer);
        self
    }
}
