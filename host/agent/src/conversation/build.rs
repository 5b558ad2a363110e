//! Construction of a conversation from its builder.

use std::collections::HashMap;
use std::sync::Arc;

use super::builder::{ConversationBuilder, RESERVED_TOOL_NAMES};
use super::conversation_handle::Conversation;
use super::earlier_state::take_earlier_state;
use super::loop_config::LoopConfig;
use super::restoration::restore_from_events;
use super::tool_references::check_tool_references;
use crate::event::{Event, Observer, Observers, OuterConversationObservers};
use crate::group::{SourceCache, ToolGroups};
use crate::injection::{InjectionStrategy, StrategyChain};
use crate::journal::Journal;
use crate::model::{ChatModel, ModelChoice, ModelTask, Models, ToolDelivery};
use crate::outcome::RunOutcome;
use crate::process::AgentProcess;
use crate::state::{CallIds, ConversationState, History, LateResults, LongResults, Roles, read_result_tool};
use crate::toolbox::{Toolbox, gateway_tool};
use toolwit_core::{
    Blackboard, Caller, Decorator, Guards, MemoryBlackboard, Tool, ToolContext, ToolId, ToolName, ToolSelector, ToolSet,
};
use toolwit_core::{Error, ErrorKind, Phase};

impl ConversationBuilder {
    /// Builds the conversation.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] in each of these cases:
    ///
    /// - the model is missing, or does not support the delivery;
    /// - a limit, a role, a tool object, the history or the journal is invalid;
    /// - the configuration of a strategy is invalid;
    /// - a strategy requires the events of the history, which are missing;
    /// - a strategy or a decorator refers to a tool that the conversation does not have and that no strategy can restore.
    pub fn build(self) -> Result<Conversation, Error> {
        let Self {
            mut config,
            goal,
            history,
            earlier_events,
            context,
            journal,
        } = self;
        let journal = journal.map(Arc::new);
        config.setter_error.take().map_or(Ok(()), Err)?;
        config.limits.check()?;
        let (models, model) = choose_model(&config, goal.as_deref(), &context)?;
        check_delivery(config.delivery, &*model)?;
        config.limits = config.limits.for_model(&*model);
        config = with_workflows(config);
        config.strategies.check()?;
        let groups = choose_groups(&config, &context);
        let call_ids = CallIds::of(&context);
        let (mut history, events, interrupted_run) = match &journal {
            Some(journal) => take_earlier_state(journal, &call_ids)?,
            None => (History::resume(history, call_ids.clone())?, earlier_events, None),
        };
        check_events(&events, &history, &config.strategies)?;
        if let Some(system_message) = take_system_message(&mut config) {
            history.set_system(system_message);
        }
        let blackboard = blackboard_of(&context);
        let long_results = Arc::new(LongResults::new(config.limits.result_bytes_max));
        let read_result: Arc<dyn Tool> = Arc::new(read_result_tool(long_results.clone())?);
        config.tools.extend(gateway_tools(config.delivery, &read_result)?);
        let (tools, guards) = guarded_tools(&mut config, &context)?;
        let process = Arc::new(AgentProcess::begin(goal, config.budget, &context));
        let observers = all_observers(&process, journal.as_ref(), config.observers, &context);
        let mut state = ConversationState {
            history,
            toolbox: Toolbox::new(tools, config.delivery, &config.limits),
            strategy: config.strategies,
            process,
            late_results: LateResults::new(context.cancel_token()),
            roles: Roles::new(groups.clone(), config.roles)?,
            caller: Caller::of(&context),
            drops_nested_artifacts: config.has_nested_artifacts == Some(false),
            context: with_journal_and_observers(&context, config.has_nested_events, &observers, journal.as_ref())
                .with_blackboard(blackboard.clone())
                .with_extension(call_ids)
                .with_extension(SourceCache::of(&context))
                .with_extension(groups)
                .with_extension(models)
                .with_extension(guards)
                .with_extension(OuterModel(model.clone())),
            model,
            blackboard,
            options: config.options,
            limits: config.limits,
            approvals: config.approvals,
            observers,
            read_result_tool: read_result,
            long_results,
            turns: 0,
            interrupted_run,
            recovered_outcomes: HashMap::new(),
            denied_calls: HashMap::new(),
            earlier_starts: HashMap::new(),
            earlier_answers: HashMap::new(),
            journal,
        };
        restore_from_events(&mut state, events);
        Ok(Conversation { state })
    }

    /// Builds a conversation and answers one user message.
    ///
    /// # Errors
    /// As [`build`](ConversationBuilder::build) and [`Conversation::run`]. Use these two methods to keep the history of
    /// a failed run.
    pub async fn run(self, prompt: &str) -> Result<RunOutcome, Error> {
        Ok(self.build()?.run(prompt).await?)
    }
}

/// Returns the tools that the delivery `gateway` declares from the start: `call_tool`, which calls injected tools, and
/// `read_result`. Returns no tools for another delivery.
fn gateway_tools(delivery: ToolDelivery, read_result: &Arc<dyn Tool>) -> Result<Vec<Arc<dyn Tool>>, Error> {
    if delivery != ToolDelivery::Gateway {
        return Ok(Vec::new());
    }
    Ok(vec![Arc::new(gateway_tool()?), read_result.clone()])
}

/// Returns the observers of the conversation. The journal is first: it receives each event before the other observers.
fn all_observers(
    process: &AgentProcess,
    journal: Option<&Arc<Journal>>,
    configured_observers: Vec<Arc<dyn Observer>>,
    context: &ToolContext,
) -> Observers {
    let recorder = journal.map(|journal| journal.clone() as Arc<dyn Observer>);
    let observers = recorder.into_iter().chain(configured_observers).collect();
    Observers::new(
        process.origin(),
        observers,
        context.extension::<OuterConversationObservers>(),
    )
}

/// Adds the journal to the context, in which the conversation and its agents record their calls and questions. Agents send their
/// events to it and, if `forwards_agent_events` is set, to all observers of the conversation.
fn with_journal_and_observers(
    context: &ToolContext,
    forwards_agent_events: bool,
    observers: &Observers,
    journal: Option<&Arc<Journal>>,
) -> ToolContext {
    let context = match journal {
        Some(journal) => context.clone().with_extension(journal.clone()),
        None => context.clone(),
    };
    let agent_observers = match journal {
        _ if forwards_agent_events => observers.clone(),
        // The journal is the first observer.
        Some(_) => observers.first_and_outer(context.extension()),
        None => return context,
    };
    context.with_extension(OuterConversationObservers(agent_observers))
}

/// Returns the blackboard of the context, or else a new one.
fn blackboard_of(context: &ToolContext) -> Arc<dyn Blackboard> {
    let blackboard = context.blackboard().cloned();
    blackboard.unwrap_or_else(|_| Arc::new(MemoryBlackboard::new()))
}

/// Adds the playbook, the state machine and the chaining to the strategies, and their tools to the initial tools.
fn with_workflows(mut config: LoopConfig) -> LoopConfig {
    let workflows = [config.playbook.take(), config.state_machine.take()];
    for workflow in workflows.into_iter().flatten() {
        config = config.with_tools(workflow.tools).with_strategy(workflow.strategy);
    }
    if config.chaining.is_empty() {
        return config;
    }
    let chaining = std::mem::take(&mut config.chaining);
    config.with_tools(chaining.tools()).with_strategy(chaining)
}

/// Takes the instructions out of the configuration and returns the system message, or `None` if there are no instructions.
fn take_system_message(config: &mut LoopConfig) -> Option<String> {
    let guidance = config.guidance.take().filter(|guidance| !guidance.is_empty());
    let reference_prompts = std::mem::take(&mut config.reference_prompts);
    let parts: Vec<_> = config
        .system
        .take()
        .into_iter()
        .chain(guidance)
        .chain(reference_prompts)
        .collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Returns the tool groups of this conversation, or else those of the outer conversation.
fn choose_groups(config: &LoopConfig, context: &ToolContext) -> Arc<ToolGroups> {
    let outer_groups = || context.extension::<Arc<ToolGroups>>().cloned().unwrap_or_default();
    config.groups.clone().unwrap_or_else(outer_groups)
}

/// Returns the models of this conversation, or else those of the outer conversation. Also returns the model of this conversation.
/// If the configuration contains neither models nor a choice, this is the model of the outer conversation.
fn choose_model(
    config: &LoopConfig,
    goal: Option<&str>,
    context: &ToolContext,
) -> Result<(Arc<Models>, Arc<dyn ChatModel>), Error> {
    let outer_models = || context.extension::<Arc<Models>>().cloned().unwrap_or_default();
    let models = config.models.clone().unwrap_or_else(outer_models);
    let outer_model = || context.extension::<OuterModel>().map(|outer| outer.0.clone());
    let task = ModelTask::new(goal.unwrap_or_default(), config.tools.len());
    let model = match &config.model {
        Some(choice) => models.choose(choice, &task)?,
        None if config.models.is_some() => models.choose(&ModelChoice::Default, &task)?,
        None => outer_model().ok_or_else(|| {
            Error::new(ErrorKind::Configuration, Phase::Model, "the conversation has no model")
                .with_suggestion("set one with `model`")
        })?,
    };
    Ok((models, model))
}

/// The model of a conversation, in the context of its tools. Agents inside it use this model if they have no model of their own.
struct OuterModel(Arc<dyn ChatModel>);

/// Rejects a history with calls but without the events from which a strategy restores its state.
fn check_events(events: &[Event], history: &History, strategies: &StrategyChain) -> Result<(), Error> {
    if !events.is_empty() || !history.has_calls() || !strategies.requires_events() {
        return Ok(());
    }
    let message =
        "a strategy of the conversation, such as a state machine or a playbook, requires the events of its history";
    Err(
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(
            "pass the events to `resume`, or begin again with `StateMachine::with_initial_state` or `Playbook::restarted`",
        ),
    )
}

/// Rejects a delivery that the model does not support.
fn check_delivery(delivery: ToolDelivery, model: &dyn ChatModel) -> Result<(), Error> {
    if delivery != ToolDelivery::Native || model.supports_deferred_tools() {
        return Ok(());
    }
    let message = format!("the model `{}` does not support the delivery `native`", model.name());
    Err(Error::new(ErrorKind::Configuration, Phase::Model, message)
        .with_suggestion("use the delivery `list` or `gateway`"))
}

/// Returns the initial tools, and the guards for the agents of the conversation. Applies the decorators and the guards of the
/// configuration and the guards of the outer conversation to the tools. Checks that the conversation can have each tool to
/// which a strategy or a decorator refers.
fn guarded_tools(config: &mut LoopConfig, context: &ToolContext) -> Result<(ToolSet, Guards), Error> {
    let strategies = &config.strategies;
    let decorators = std::mem::take(&mut config.decorators);
    let mut selectors = strategies.referenced_tools();
    selectors.extend(decorators.iter().map(|(tools, _)| tools.clone()));
    // `selectors` does not contain guards, because a guard may select no tool of this conversation.
    let outer_guards = Guards::of(context);
    let decorators: Vec<_> = decorators
        .into_iter()
        .chain(std::mem::take(&mut config.guards))
        .chain(outer_guards.entries().iter().cloned())
        .collect();
    let guards = Guards::from_decorators(&decorators);
    let tools = initial_tools(std::mem::take(&mut config.tools), decorators);
    check_tool_references(&selectors, &tools, strategies)?;
    Ok((tools, guards))
}

/// Returns the set of the initial tools. Native tools and tools of the host get their names first, so that a plugin cannot take
/// these names.
fn initial_tools(tools: Vec<Arc<dyn Tool>>, decorators: Vec<(ToolSelector, Arc<dyn Decorator>)>) -> ToolSet {
    let mut set = ToolSet::new();
    for (selector, decorator) in decorators {
        set.decorate(&selector, decorator);
    }
    RESERVED_TOOL_NAMES
        .into_iter()
        .filter_map(ToolName::parse)
        .for_each(|name| set.reserve(name));
    let (native_and_host, others): (Vec<_>, Vec<_>) = tools.into_iter().partition(|tool| {
        let id = &tool.definition().id;
        id.is_native() || *id == ToolId::host(tool.definition().name())
    });
    for tool in native_and_host.into_iter().chain(others) {
        set.add(tool);
    }
    set
}
