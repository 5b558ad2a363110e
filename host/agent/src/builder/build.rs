//! From the description to the conversation.

use std::sync::Arc;

use super::{ConversationBuilder, RESERVED_NAMES};
use crate::conversation::Conversation;
use crate::gateway::call_tool;
use crate::history::History;
use crate::late::LateResults;
use crate::model::{ChatModel, Delivery, ModelChoice, ModelTask, Models};
use crate::outcome::RunOutcome;
use crate::page::{Pages, read_result};
use crate::process::Process;
use crate::resume::replay;
use crate::toolbox::Toolbox;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{MemoryBlackboard, Tool, ToolId, ToolName, ToolSet};

impl ConversationBuilder {
    /// Makes the conversation.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] without a model, for limits with which nothing can run, and for a history that makes no
    /// sense.
    pub fn build(mut self) -> Result<Conversation, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.limits.check()?;
        let (models, model) = self.chosen_model()?;
        check(self.delivery, &*model)?;
        if !self.chaining.is_empty() {
            let chaining = std::mem::take(&mut self.chaining);
            self = self.tools(chaining.tools()).strategy(chaining);
        }
        let mut history = History::resume(self.history)?;
        let guidance = self.guidance.filter(|guidance| !guidance.is_empty());
        let instructions: Vec<_> = self.system.into_iter().chain(guidance).chain(self.references).collect();
        if !instructions.is_empty() {
            history.instruct(instructions.join("\n\n"));
        }
        let blackboard = match self.context.blackboard() {
            Ok(given) => given.clone(),
            Err(_) => Arc::new(MemoryBlackboard::new()),
        };
        let pages = Arc::new(Pages::new(self.limits.result_bytes_max));
        let reader: Arc<dyn Tool> = Arc::new(read_result(pages.clone())?);
        if self.delivery == Delivery::Gateway {
            self.tools
                .extend([Arc::new(call_tool()?) as Arc<dyn Tool>, reader.clone()]);
        }
        let mut conversation = Conversation {
            history,
            toolbox: Toolbox::new(named(self.tools), self.delivery, &self.limits),
            strategy: self.strategies.0,
            process: Arc::new(Process::begin(self.goal, self.budget, &self.context)),
            late: LateResults::new(self.context.cancel()),
            drops_nested_artifacts: self.drops_nested_artifacts,
            context: self
                .context
                .with_blackboard(blackboard.clone())
                .with_extension(models)
                .with_extension(CallersModel(model.clone())),
            model,
            blackboard,
            options: self.options,
            limits: self.limits,
            observers: self.observers,
            reader,
            pages,
            turns: 0,
        };
        replay(&mut conversation, self.log);
        Ok(conversation)
    }

    /// Chooses the model, among this conversation's models or else those of the conversation around it.
    fn chosen_model(&self) -> Result<(Arc<Models>, Arc<dyn ChatModel>), Error> {
        let around = || self.context.extension::<Arc<Models>>().cloned().unwrap_or_default();
        let models = self.models.clone().unwrap_or_else(around);
        let callers = || {
            self.context
                .extension::<CallersModel>()
                .map(|callers| callers.0.clone())
        };
        let task = ModelTask::new(self.goal.as_deref().unwrap_or_default(), self.tools.len());
        let model = match &self.model {
            Some(choice) => models.choose(choice, &task)?,
            None if self.models.is_some() => models.choose(&ModelChoice::Default, &task)?,
            None => callers().ok_or_else(|| {
                Error::new(ErrorKind::Configuration, Phase::Model, "the conversation has no model")
                    .with_suggestion("set one with `model`")
            })?,
        };
        Ok((models, model))
    }

    /// Makes a conversation for one message, and answers it.
    ///
    /// # Errors
    /// As [`build`](ConversationBuilder::build) and [`Conversation::run`]; use those to get at the history of a run that
    /// failed.
    pub async fn run(self, prompt: &str) -> Result<RunOutcome, Error> {
        Ok(self.build()?.run(prompt).await?)
    }
}

/// The model of the conversation in which a tool is called: agents that choose none ask the same.
struct CallersModel(Arc<dyn ChatModel>);

/// Refuses a way to show tools that the model does not have.
fn check(delivery: Delivery, model: &dyn ChatModel) -> Result<(), Error> {
    if delivery != Delivery::Native || model.supports_deferred_tools() {
        return Ok(());
    }
    let message = format!("the model `{}` cannot hold tools back by itself", model.name());
    Err(Error::new(ErrorKind::Configuration, Phase::Model, message)
        .with_suggestion("use the delivery `list` or `gateway`"))
}

/// Names the tools that are there from the start: those written in Rust first, so that no plugin takes their names.
fn named(tools: Vec<Arc<dyn Tool>>) -> ToolSet {
    let mut set = ToolSet::new();
    RESERVED_NAMES
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
