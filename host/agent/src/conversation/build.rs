//! Construction of a conversation from its builder.

use std::sync::Arc;

use super::builder::{ConversationBuilder, RESERVED_TOOL_NAMES};
use super::conversation_handle::Conversation;
use super::references::check_references;
use super::replay::replay;
use crate::injection::InjectionStrategy;
use crate::model::{ChatModel, Delivery, ModelChoice, ModelTask, Models};
use crate::outcome::RunOutcome;
use crate::process::Process;
use crate::state::{ConversationState, History, LateResults, LongResults, read_result_tool};
use crate::toolbox::{Toolbox, call_tool};
use toolwit_core::{Decorator, MemoryBlackboard, Tool, ToolId, ToolName, ToolSelector, ToolSet};
use toolwit_core::{Error, ErrorKind, Phase};

impl ConversationBuilder {
    /// Builds the conversation.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the model is missing, if a limit, a tool object or the history is invalid, or if a strategy or
    /// a decorator refers to a tool that the conversation does not have and that no strategy can restore.
    pub fn build(mut self) -> Result<Conversation, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.limits.check()?;
        let (models, model) = self.chosen_model()?;
        check_delivery(self.delivery, &*model)?;
        if !self.chaining.is_empty() {
            let chaining = std::mem::take(&mut self.chaining);
            self = self.tools(chaining.tools()).strategy(chaining);
        }
        let mut history = History::resume(self.history)?;
        let guidance = self.guidance.filter(|guidance| !guidance.is_empty());
        let instructions: Vec<_> = self.system.into_iter().chain(guidance).chain(self.references).collect();
        if !instructions.is_empty() {
            history.set_system(instructions.join("\n\n"));
        }
        let blackboard = match self.context.blackboard() {
            Ok(blackboard) => blackboard.clone(),
            Err(_) => Arc::new(MemoryBlackboard::new()),
        };
        let long_results = Arc::new(LongResults::new(self.limits.result_bytes_max));
        let read_result: Arc<dyn Tool> = Arc::new(read_result_tool(long_results.clone())?);
        if self.delivery == Delivery::Gateway {
            self.tools
                .extend([Arc::new(call_tool()?) as Arc<dyn Tool>, read_result.clone()]);
        }
        let mut references = self.strategies.0.references();
        references.extend(self.decorators.iter().map(|(tools, _)| tools.clone()));
        let tools = initial_tools(self.tools, self.decorators);
        check_references(&references, &tools, &self.strategies.0)?;
        let mut state = ConversationState {
            history,
            toolbox: Toolbox::new(tools, self.delivery, &self.limits),
            strategy: self.strategies.0,
            process: Arc::new(Process::begin(self.goal, self.budget, &self.context)),
            late_results: LateResults::new(self.context.cancel()),
            drops_nested_artifacts: self.drops_nested_artifacts,
            context: self
                .context
                .with_blackboard(blackboard.clone())
                .with_extension(models)
                .with_extension(CallerModel(model.clone())),
            model,
            blackboard,
            options: self.options,
            limits: self.limits,
            observers: self.observers,
            read_result,
            long_results,
            turns: 0,
        };
        replay(&mut state, self.log);
        Ok(Conversation { state })
    }

    /// Chooses a model from the models of this conversation, or else from those of the outer conversation.
    fn chosen_model(&self) -> Result<(Arc<Models>, Arc<dyn ChatModel>), Error> {
        let outer_models = || self.context.extension::<Arc<Models>>().cloned().unwrap_or_default();
        let models = self.models.clone().unwrap_or_else(outer_models);
        let caller_model = || self.context.extension::<CallerModel>().map(|caller| caller.0.clone());
        let task = ModelTask::new(self.goal.as_deref().unwrap_or_default(), self.tools.len());
        let model = match &self.model {
            Some(choice) => models.choose(choice, &task)?,
            None if self.models.is_some() => models.choose(&ModelChoice::Default, &task)?,
            None => caller_model().ok_or_else(|| {
                Error::new(ErrorKind::Configuration, Phase::Model, "the conversation has no model")
                    .with_suggestion("set one with `model`")
            })?,
        };
        Ok((models, model))
    }

    /// Builds a conversation and answers one user message.
    ///
    /// # Errors
    /// As [`build`](ConversationBuilder::build) and [`Conversation::run`]. Use those to keep the history of a failed run.
    pub async fn run(self, prompt: &str) -> Result<RunOutcome, Error> {
        Ok(self.build()?.run(prompt).await?)
    }
}

/// The model of the conversation that calls a tool. Agents without a model of their own use it.
struct CallerModel(Arc<dyn ChatModel>);

/// Rejects a delivery that the model does not support.
fn check_delivery(delivery: Delivery, model: &dyn ChatModel) -> Result<(), Error> {
    if delivery != Delivery::Native || model.supports_deferred_tools() {
        return Ok(());
    }
    let message = format!("the model `{}` does not support the delivery `native`", model.name());
    Err(Error::new(ErrorKind::Configuration, Phase::Model, message)
        .with_suggestion("use the delivery `list` or `gateway`"))
}

/// Assigns names to the initial tools: native tools first, so that a plugin cannot take their names.
fn initial_tools(tools: Vec<Arc<dyn Tool>>, decorators: Vec<(ToolSelector, Arc<dyn Decorator>)>) -> ToolSet {
    let mut set = ToolSet::new();
    for (tools, decorator) in decorators {
        set.decorate(&tools, decorator);
    }
    RESERVED_TOOL_NAMES
        .into_iter()
        .filter_map(ToolName::parse)
        .for_each(|name| set.reserve(name));
    let (native, others): (Vec<_>, Vec<_>) = tools.into_iter().partition(|tool| {
        let id = &tool.definition().id;
        id.is_native() || *id == ToolId::host(tool.definition().name())
    });
    for tool in native.into_iter().chain(others) {
        set.add(tool);
    }
    set
}
