//! Plugins that intercept the calls of other tools.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::call::interceptor_call::{
    InterceptorFunction, call_argument, call_interceptor, outcome_argument, read_decision, read_review,
};
use crate::call::plugin::Plugin;
use crate::call::scope::Scope;
use toolwit_core::{
    Arguments, CallDecision, CallOutcome, Error, ErrorKind, InterceptedCall, Interceptor, OutcomeReview, Phase,
    ToolContext,
};

/// A plugin that decides about the calls of other tools: it exports `toolwit:plugin/interceptor`.
///
/// Each decision about a call and each review of an outcome runs in a fresh instance, under the limits and with the grants of
/// the plugin. Decisions run one after another, so that a plugin can count the calls in its key–value store. Reviews run
/// concurrently.
pub struct PluginInterceptor {
    plugin: Arc<Plugin>,
    /// All calls of the interceptor count as one conversation, so that a grant for one conversation covers all of them.
    scope: Scope,
    /// Held while a decision about a call runs.
    decision_lock: Mutex<()>,
}

impl PluginInterceptor {
    /// Creates the interceptor of a plugin.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the plugin does not export `toolwit:plugin/interceptor`.
    pub fn new(plugin: Arc<Plugin>) -> Result<Self, Error> {
        if !plugin.inspection().is_interceptor() {
            let message = "the plugin is not an interceptor: it does not export `toolwit:plugin/interceptor`";
            // The component may export the interface in another version or with other types. The interface was then skipped, and
            // the reason is a hint for the author.
            let mut skipped_exports = plugin.inspection().skipped.iter();
            let skipped_export =
                skipped_exports.find(|skipped| skipped.export.starts_with("toolwit:plugin/interceptor"));
            let suggestion = skipped_export.map(|skipped| skipped.reason.clone());
            return Err(Error::new(ErrorKind::Configuration, Phase::Load, message)
                .with_suggestion(suggestion.unwrap_or_else(|| {
                    "name a plugin that exports it, such as the shipped `redact` and `quota`".to_owned()
                }))
                .with_plugin(plugin.name()));
        }
        Ok(Self {
            plugin,
            scope: Scope::new(),
            decision_lock: Mutex::new(()),
        })
    }
}

#[async_trait]
impl Interceptor for PluginInterceptor {
    fn name(&self) -> &str {
        self.plugin.name()
    }

    async fn before(&self, call: &InterceptedCall, context: &ToolContext) -> Result<CallDecision, Error> {
        let arguments = Arguments::from_iter([("call".to_owned(), call_argument(call))]);
        // The guest runs under a time limit, so the lock is released even if the guest loops forever.
        let _guard = self.decision_lock.lock().await;
        let decision = call_interceptor(
            &self.plugin,
            InterceptorFunction::Before,
            arguments,
            &self.scope,
            context,
        )
        .await?;
        read_decision(&decision)
    }

    async fn after(
        &self,
        call: &InterceptedCall,
        outcome: CallOutcome,
        context: &ToolContext,
    ) -> Result<OutcomeReview, Error> {
        let arguments: [(String, Value); 2] = [
            ("call".to_owned(), call_argument(call)),
            ("outcome".to_owned(), outcome_argument(&outcome)),
        ];
        let arguments = Arguments::from_iter(arguments);
        let review = call_interceptor(
            &self.plugin,
            InterceptorFunction::After,
            arguments,
            &self.scope,
            context,
        )
        .await?;
        read_review(&review)
    }
}
