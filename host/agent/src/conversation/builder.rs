//! The builder of a conversation.

use std::sync::Arc;

use super::loop_config::LoopConfig;
use crate::event::{Event, Observer};
use crate::group::{ToolGroup, ToolGroups};
use crate::injection::{InjectionStrategy, Reference, RegisteredTools, SEARCH_TOOLS, StrategyChain};
use crate::journal::Journal;
use crate::limits::LoopLimits;
use crate::model::{ChatModel, ChatOptions, ModelChoice, Models, ToolDelivery};
use crate::process::Budget;
use crate::replay::StartedReplay;
use crate::state::READ_RESULT;
use crate::toolbox::CALL_TOOL;
use toolwit_core::{Approvals, Decorator, Message, SharedToolSet, Tool, ToolContext, ToolObject, ToolSelector};

/// The names that only tools of the host may have.
pub const RESERVED_TOOL_NAMES: [&str; 3] = [READ_RESULT, SEARCH_TOOLS, CALL_TOOL];

/// Builds a [`Conversation`](super::Conversation). Only the model is required. By default, the conversation has no tools,
/// reveals the tools of facades, discovers entities, and uses the default [`LoopLimits`].
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
    pub(super) config: LoopConfig,
    pub(super) goal: Option<String>,
    pub(super) history: Vec<Message>,
    /// The events from which the conversation is resumed.
    pub(super) earlier_events: Vec<Event>,
    pub(super) context: ToolContext,
    pub(super) journal: Option<Journal>,
}

impl ConversationBuilder {
    /// Sets the configuration of the loop. It replaces all settings that a [`LoopConfig`] has.
    #[must_use]
    pub fn config(mut self, config: LoopConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the model. An `Arc` of a model is a model too.
    #[must_use]
    pub fn model(self, model: impl ChatModel + 'static) -> Self {
        self.map_config(|config| config.with_model(model))
    }

    /// Sets the models among which this conversation and its agents choose. Without a choice, the default model is used.
    #[must_use]
    pub fn models(self, models: Models) -> Self {
        self.map_config(|config| config.with_models(models))
    }

    /// Chooses one of the [`models`](Self::models) by name, by role, or automatically.
    #[must_use]
    pub fn model_choice(self, choice: impl Into<ModelChoice>) -> Self {
        self.map_config(|config| config.with_model_choice(choice))
    }

    /// Sets the goal, which tools and agents can read. By default it is the first user message. Long goals are truncated.
    #[must_use]
    pub fn goal(mut self, goal: impl Into<String>) -> Self {
        self.goal = Some(goal.into());
        self
    }

    /// Limits the total usage of all runs of the conversation, including nested agents.
    #[must_use]
    pub fn budget(self, budget: Budget) -> Self {
        self.map_config(|config| config.with_budget(budget))
    }

    /// Sets the approvals. They determine which calls need an approval, and which approver decides. They apply directly before a
    /// call starts, whether the model, a plugin, an agent or a background task makes it. By default, no call needs an approval.
    ///
    /// ```
    /// use toolwit_agent::Conversation;
    /// use toolwit_core::{Approval, ApprovalPolicy, ApprovalRequest, Approvals};
    ///
    /// let ask = |request: &ApprovalRequest| Approval::Denied { reason: format!("`{}` is not needed", request.name) };
    /// let approvals = Approvals::new(ApprovalPolicy::default()).with_approver(ask);
    /// let builder = Conversation::builder().approvals(approvals);
    /// ```
    #[must_use]
    pub fn approvals(self, approvals: Approvals) -> Self {
        self.shared_approvals(Arc::new(approvals))
    }

    /// Sets approvals that several conversations share, with their remembered answers.
    #[must_use]
    pub fn shared_approvals(self, approvals: Arc<Approvals>) -> Self {
        self.map_config(|config| config.with_approvals(approvals))
    }

    /// Sets whether the outcome contains the artifacts of agentic tools. By default it does.
    #[must_use]
    pub fn nested_artifacts(self, are_included: bool) -> Self {
        self.map_config(|config| config.with_nested_artifacts(are_included))
    }

    /// Sets the system message.
    #[must_use]
    pub fn system(self, instructions: impl Into<String>) -> Self {
        self.map_config(|config| config.with_system(instructions))
    }

    /// Continues an earlier history. Its unanswered calls are answered as cancelled. A state machine or a playbook also needs
    /// the events of the history: without [`resume`](Self::resume), [`build`](Self::build) fails for a history with calls. See
    /// [`InjectionStrategy::requires_events`].
    #[must_use]
    pub fn history(mut self, messages: Vec<Message>) -> Self {
        self.history = messages;
        self
    }

    /// Adds a tool. It replaces an earlier tool with the same id.
    #[must_use]
    pub fn tool(self, tool: impl Tool + 'static) -> Self {
        self.map_config(|config| config.with_tool(tool))
    }

    /// Adds the methods of an object as tools. The [`ToolObject`] determines their names. [`build`](Self::build) fails if the
    /// object has no methods, or if a tool of the object has the same id as an earlier tool. Objects of one type therefore need
    /// different ids or names.
    #[must_use]
    pub fn tool_object(self, object: impl Into<ToolObject>) -> Self {
        self.map_config(|config| config.with_tool_object(object))
    }

    /// Adds tools. Native tools and tools of the host have precedence for names, in whatever order the tools are added.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.map_config(|config| config.with_tools(tools))
    }

    /// Sets the tool groups among which the conversation, its turns and its agents choose by role.
    #[must_use]
    pub fn groups(self, groups: ToolGroups) -> Self {
        self.map_config(|config| config.with_groups(groups))
    }

    /// Adds the tools of a role of the [`groups`](Self::groups). They are resolved when a turn begins, with its context;
    /// [`build`](Self::build) only checks that the role exists.
    #[must_use]
    pub fn role(self, role: impl Into<String>) -> Self {
        self.map_config(|config| config.with_role(role))
    }

    /// Adds the tools of a group.
    #[must_use]
    pub fn group(self, group: ToolGroup) -> Self {
        self.tools(group.tools)
    }

    /// Applies a decorator to the selected tools, however they enter the conversation: from the start, behind a facade,
    /// from a strategy or a search, after a resume, or from a plugin file that was replaced. Decorators are applied in
    /// the order in which they are added, each around the earlier ones.
    ///
    /// [`build`](Self::build) fails if no tool is selected, unless the selector is [late](ToolSelector::later). A method of an
    /// entity is selected by its own id. The [guards](Decorator::is_guard) of the tool that returned the entity, such as an
    /// approval, also apply to the method.
    ///
    /// Guards also apply to the selected tools of agents inside the conversation, at any depth. A tool that only agents have is
    /// selected with [`ToolSelector::later`]. Other decorators apply to the tools of the conversation itself.
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
    pub fn decorate(self, tools: impl Into<ToolSelector>, decorator: impl Decorator + 'static) -> Self {
        self.map_config(|config| config.with_decorator(tools, decorator))
    }

    /// Applies a [guard](Decorator::is_guard) of the host, such as an [`Interception`](toolwit_core::Interception), around all
    /// [decorators](Self::decorate), whether these are added before or after it. If the guard changes the arguments of a call,
    /// a decorator such as an approval therefore receives the changed arguments.
    ///
    /// A guard also applies to the selected tools of agents, at any depth, but only once if the agent has the same guard.
    /// Unlike for a decorator, [`build`](Self::build) does not fail if `tools` selects no tool.
    #[must_use]
    pub fn guard(self, tools: impl Into<ToolSelector>, guard: Arc<dyn Decorator>) -> Self {
        self.map_config(|config| config.with_guard(tools, guard))
    }

    /// Adds the tools of a shared set, and follows its changes while the conversation runs.
    #[must_use]
    pub fn shared_tools(self, tools: &SharedToolSet) -> Self {
        self.strategy(RegisteredTools::new(tools.clone()))
    }

    /// Adds a reference: its tools, and its instructions at the end of the system message. [`Reference::facade`] is one tool instead.
    #[must_use]
    pub fn reference(self, reference: &Reference) -> Self {
        self.map_config(|config| config.with_reference(reference))
    }

    /// Adds a strategy after the others, and its initial tools. Its guidance applies unless guidance is already set.
    #[must_use]
    pub fn strategy(self, strategy: impl InjectionStrategy + 'static) -> Self {
        self.map_config(|config| config.with_strategy(strategy))
    }

    /// Sets the instructions about the use of tools. They replace the guidance of a strategy; an empty text omits them.
    #[must_use]
    pub fn guidance(self, guidance: impl Into<String>) -> Self {
        self.map_config(|config| config.with_guidance(guidance))
    }

    /// Replaces all strategies, including the default ones; see [`LoopConfig::with_strategies`].
    #[must_use]
    pub fn strategies(self, strategies: StrategyChain) -> Self {
        self.map_config(|config| config.with_strategies(strategies))
    }

    /// Resumes a conversation from its own events: the same tools are visible, with the same names and in the same order.
    /// A prefix of the events creates a branch. Set the same tools, strategies and [`history`](Self::history) as before.
    ///
    /// Open facades stay open. Background calls of the earlier process are answered with an error. Live objects of the earlier
    /// process no longer exist: a call of a method fails until a result contains the object again.
    #[must_use]
    pub fn resume(mut self, events: impl IntoIterator<Item = Event>) -> Self {
        self.earlier_events = events.into_iter().collect();
        self
    }

    /// Stores the events of the conversation in a journal, and continues the conversation that the journal contains. Set the same
    /// tools and strategies as before; [`history`](Self::history) and [`resume`](Self::resume) have no effect.
    ///
    /// Every request and every call is stored before it begins. If the process ends in the middle of a run,
    /// [`Conversation::resume_run`](super::Conversation::resume_run) continues it in another process. Calls that ended never
    /// run again. A call that was interrupted and may have changed something runs again only if a person decides so.
    ///
    /// ```
    /// use toolwit_agent::model::ScriptedModel;
    /// use toolwit_agent::{Conversation, Journal, MemoryJournalStore};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = MemoryJournalStore::new();
    /// let session = "tea".parse()?;
    /// let journal = Journal::create(&store, &session).await?;
    /// let model = ScriptedModel::new().answer("Tea is a drink.");
    /// let mut conversation = Conversation::builder().model(model).journal(journal).build()?;
    /// conversation.run("What is tea?").await?;
    /// drop(conversation);
    ///
    /// let journal = Journal::open(&store, &session).await?;
    /// let conversation = Conversation::builder().model(ScriptedModel::new()).journal(journal).build()?;
    /// assert_eq!(conversation.history().len(), 2);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn journal(mut self, journal: Journal) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Prepares a replay: sets its model, its approvals and a journal that stores nothing, and adds its decorator and observer.
    /// Set the tools and strategies of the recorded run too. A later [`approvals`](Self::approvals) call replaces the approvals.
    #[must_use]
    pub fn replay(self, replay: &StartedReplay) -> Self {
        self.model(replay.model())
            .journal(Journal::for_replay(replay.recording().entries()))
            .approvals(replay.approvals())
            .decorate(ToolSelector::all(), replay.decorator())
            .shared_observer(replay.observer())
    }

    /// Sets how injected tools are delivered to the model.
    #[must_use]
    pub fn delivery(self, delivery: ToolDelivery) -> Self {
        self.map_config(|config| config.with_delivery(delivery))
    }

    /// Removes all strategies, including the default ones, but not the tools that they added. The playbook, the state machine
    /// and the chaining stay.
    #[must_use]
    pub fn without_strategies(self) -> Self {
        self.strategies(StrategyChain::new())
    }

    /// Sets the options of the model.
    #[must_use]
    pub fn options(self, options: ChatOptions) -> Self {
        self.map_config(|config| config.with_options(options))
    }

    /// Sets the limits of a run.
    #[must_use]
    pub fn limits(self, limits: LoopLimits) -> Self {
        self.map_config(|config| config.with_limits(limits))
    }

    /// Sets the iteration limit of a run. The other limits are unchanged.
    #[must_use]
    pub fn iterations_max(self, iterations_max: u32) -> Self {
        self.map_config(|config| config.with_iterations_max(iterations_max))
    }

    /// Sets the estimated size of a request, in tokens, beyond which a summary by the model replaces the older messages. The
    /// messages that stay are listed at [`LoopLimits::context_tokens_max`]. [`Event::HistoryCompacted`] has the summary.
    #[must_use]
    pub fn context_tokens_max(self, tokens: u64) -> Self {
        self.map_config(|config| config.with_context_tokens_max(tokens))
    }

    /// Adds an observer.
    #[must_use]
    pub fn observer(self, observer: impl Observer + 'static) -> Self {
        self.shared_observer(Arc::new(observer))
    }

    /// Adds an observer that is shared with other owners.
    #[must_use]
    pub fn shared_observer(self, observer: Arc<dyn Observer>) -> Self {
        self.map_config(|config| config.with_observer(observer))
    }

    /// Sets whether the observers receive the events of agents inside the conversation too, at any depth. By default they do
    /// not. The origin of an event identifies the agent.
    #[must_use]
    pub fn nested_events(self, are_forwarded: bool) -> Self {
        self.map_config(|config| config.with_nested_events(are_forwarded))
    }

    pub(super) fn map_config(mut self, change: impl FnOnce(LoopConfig) -> LoopConfig) -> Self {
        self.config = change(self.config);
        self
    }
}
