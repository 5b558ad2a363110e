//! Computes the access of a call before it begins: the grants that apply, and the effect class that the sandbox proves from
//! these grants.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::plugin::Plugin;
use crate::grants::EffectiveRights;
use crate::grants::authority::ConversationNumber;
use crate::link::host::host_api::CallStack;
use toolwit_core::{Arguments, CallAccess, Effect, EffectClass, ToolContext, ToolDefinition};

impl Plugin {
    /// Returns the access that the next call of one of the plugin's tools has in a new conversation. Does not use up grants.
    ///
    /// The sandbox proves [`EffectClass::Read`] if no grant of the plugin lets it change anything outside its own instance.
    /// The tools that the plugin may call are looked up in the context. A tool that is not found there counts as one that can
    /// change something.
    pub async fn access(&self, definition: &ToolDefinition, context: &ToolContext) -> CallAccess {
        self.access_in(ConversationNumber::default(), definition.effect, context)
            .await
    }

    /// Returns the access of the next call in a conversation. `claim` is the effect class that the author of the tool declares.
    pub(super) async fn access_in(
        &self,
        conversation: ConversationNumber,
        claim: Option<EffectClass>,
        context: &ToolContext,
    ) -> CallAccess {
        let caller = CallStack::of(context).map(CallStack::caller_rights);
        let rights = match self.current_rights(conversation, caller).await {
            Ok(rights) => rights,
            // The call itself fails with this error. Until then, it counts as one that may change something.
            Err(_) => {
                return CallAccess::of(Effect::of_untrusted(EffectClass::Write, claim));
            }
        };
        let writing_rule = writing_rule(&rights, context).await;
        let proof = match writing_rule {
            None => EffectClass::Read,
            Some(_) => EffectClass::Write,
        };
        let mut access = CallAccess::of(Effect::of_untrusted(proof, claim));
        access.grant = rights.rules.describe();
        access.writing_rule = writing_rule;
        access.code = Some(self.digest().to_owned());
        access
    }

    /// Redacts the secrets of the plugin's current grants in arguments. Returns empty arguments if the grants or the secrets
    /// cannot be read.
    pub(super) async fn redacted(
        &self,
        conversation: ConversationNumber,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Arguments {
        let caller = CallStack::of(context).map(CallStack::caller_rights);
        match self.redactor(conversation, caller, context).await {
            Ok(redactor) => redactor.redact_arguments(arguments),
            // Without the secrets, the host cannot recognise them in the arguments. The call itself fails with this error.
            Err(_) => Arguments::new(),
        }
    }
}

/// Returns the first rule that lets a plugin change something outside its own instance, or `None` if no rule does.
async fn writing_rule(rights: &EffectiveRights, context: &ToolContext) -> Option<String> {
    if let Some(rule) = rights.describe_writing_rule() {
        return Some(rule);
    }
    if rights.rules.tools.is_empty() {
        return None;
    }
    let visited = context.extension::<VisitedTools>().cloned().unwrap_or_default();
    let context = context.clone().with_extension(visited.clone());
    for tool in rights.rules.tools.iter().filter(|tool| visited.insert(tool)) {
        let effect = match context.tools() {
            Some(tools) => tools.effect_of(tool, &context).await,
            None => None,
        };
        if effect.is_none_or(|effect| effect.class != EffectClass::Read) {
            return Some(format!("tool {tool}"));
        }
    }
    None
}

/// The tools whose effects are being looked up. Each tool is looked up once, so that the search ends for tools that
/// call each other.
#[derive(Clone, Default)]
struct VisitedTools(Arc<Mutex<HashSet<String>>>);

impl VisitedTools {
    /// Marks a tool as visited. Returns whether this is the first visit.
    fn insert(&self, tool: &str) -> bool {
        let mut visited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        visited.insert(tool.to_owned())
    }
}
