//! Computes the access of a call before the call begins: the grants that apply, and the effect class that the sandbox proves from
//! these grants.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::plugin::Plugin;
use crate::grants::EffectiveRights;
use crate::grants::authority::ConversationNumber;
use crate::link::host::host_api::CallStack;
use toolwit_core::{Arguments, CallAccess, Effect, EffectClass, ToolContext, ToolDefinition};

/// The description of the state that the functions of a plugin share, in place of a granted rule.
const STATE_OF_CONVERSATION: &str = "state = \"conversation\"";

impl Plugin {
    /// Returns the access that a call of one of the plugin's tools would have now, in a new conversation. Does not use up grants.
    ///
    /// The sandbox proves [`EffectClass::Read`] if no grant of the plugin lets it change anything outside its own instance.
    /// This includes changes by the tools that the plugin may call. These tools are looked up in the context. If a tool is not
    /// found in the context, the sandbox assumes that the tool can change something.
    pub async fn access(&self, definition: &ToolDefinition, context: &ToolContext) -> CallAccess {
        self.access_in(ConversationNumber::default(), definition.effect, context)
            .await
    }

    /// Returns the access that a call in a conversation would have now. `claim` is the effect class that the author of the tool
    /// declares.
    pub(super) async fn access_in(
        &self,
        conversation: ConversationNumber,
        claim: Option<EffectClass>,
        context: &ToolContext,
    ) -> CallAccess {
        let caller = CallStack::of(context).map(CallStack::caller_rights);
        let rights = match self.current_rights(conversation, caller).await {
            Ok(rights) => rights,
            // The call itself will fail with this error. Until then, assume that the call can change something.
            Err(_) => {
                return CallAccess::of(Effect::of_untrusted(EffectClass::Write, claim));
            }
        };
        let writing_rule = if self.inspection().shape.keeps_state {
            Some(STATE_OF_CONVERSATION.to_owned())
        } else {
            writing_rule(&rights, context).await
        };
        let proof = match writing_rule {
            None => EffectClass::Read,
            Some(_) => EffectClass::Write,
        };
        let mut access = CallAccess::of(Effect::of_untrusted(proof, claim));
        access.grant = rights.rules.describe();
        access.writing_rule = writing_rule;
        access.code_digest = Some(self.digest().to_owned());
        access
    }

    /// Returns the arguments without the secrets of the plugin's current grants. Returns empty arguments if the grants or the
    /// secrets cannot be read.
    pub(super) async fn redacted(
        &self,
        conversation: ConversationNumber,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Arguments {
        let caller = CallStack::of(context).map(CallStack::caller_rights);
        match self.redactor(conversation, caller, context).await {
            Ok(redactor) => redactor.redact_arguments(arguments),
            // The host cannot find secrets in the arguments without knowing the secrets. The call itself will fail with this
            // error.
            Err(_) => Arguments::new(),
        }
    }
}

/// Returns the first rule that lets a plugin change something outside its own instance, itself or by calling a tool. Returns
/// `None` if there is no such rule.
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

/// The ids of the tools whose effects have been looked up or are being looked up. Each tool is looked up once, so that the search
/// ends if tools call each other.
#[derive(Clone, Default)]
struct VisitedTools(Arc<Mutex<HashSet<String>>>);

impl VisitedTools {
    /// Marks a tool as visited. Returns whether this is the first visit.
    fn insert(&self, tool: &str) -> bool {
        let mut visited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        visited.insert(tool.to_owned())
    }
}
