//! Changes of the tools at the start of a turn.

use super::run_state::RunState;
use crate::event::Event;
use crate::injection::{InjectionStrategy, SEARCH_TOOLS, TurnContext};
use crate::model::DeclaredTool;
use crate::state::ConversationState;
use toolwit_core::{Error, ToolContext, ToolName};

/// Applies the changes that the strategies request at the start of a turn. If the run must stop before the strategies
/// have returned their changes, no change is applied.
pub(super) async fn inject_for_turn(run: &mut RunState<'_>) {
    let turn = TurnContext::at(run.view());
    let injection = tokio::select! {
        biased;
        _ = run.stop.wait() => return,
        injection = run.conversation.strategy.begin_turn(&turn) => injection,
    };
    if injection.is_none() {
        return;
    }
    // The events must name the tool that triggered the changes. At the start of a turn, this is the search tool.
    let Some(trigger) = ToolName::parse(SEARCH_TOOLS) else {
        return;
    };
    let toolbox = &mut run.conversation.toolbox;
    let events = toolbox.apply_at_turn_start(injection, &trigger);
    // No inference has been made in this turn, so the declared definitions may still change.
    toolbox.refresh_declared();
    if let Some(descriptions) = toolbox.descriptions(&events) {
        run.conversation.history.append_to_prompt(&descriptions);
        run.emit(&Event::PromptExtended { text: descriptions });
    }
    run.emit_and_record(&events);
}

/// Begins a turn without a user message: adds the tools of the conversation's roles, and applies the strategies'
/// changes. Returns whether the declared tools changed.
///
/// # Errors
/// If the tools of a role cannot be resolved.
pub(crate) async fn begin_silent_turn(
    conversation: &mut ConversationState,
    context: &ToolContext,
) -> Result<bool, Error> {
    let resolved = conversation.roles.resolve(&[], context).await?;
    conversation.roles.apply(resolved, &mut conversation.toolbox);
    let declared_before = conversation.toolbox.declared().to_vec();
    conversation.toolbox.start_turn();
    let mut run = RunState::new(conversation, context);
    inject_for_turn(&mut run).await;
    let toolbox = &mut run.conversation.toolbox;
    let limit_events = toolbox.limit_declared();
    run.emit_and_record(&limit_events);
    let declared_now = run.conversation.toolbox.declared();
    let is_different =
        |(old, new): (&DeclaredTool, &DeclaredTool)| old.name != new.name || old.definition != new.definition;
    Ok(declared_before.len() != declared_now.len() || declared_before.iter().zip(declared_now).any(is_different))
}
