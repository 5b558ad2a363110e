//! Changes of the tools at the start of a turn.

use std::sync::Arc;

use super::run_state::RunState;
use crate::event::Event;
use crate::injection::{Injection, InjectionStrategy, SEARCH_TOOLS, TurnContext};
use crate::model::DeclaredTool;
use crate::state::ConversationState;
use toolwit_core::{Caller, Error, Tool, ToolContext, ToolName};

/// Applies the changes that the strategies request at the start of a turn, and those for another caller than that of the
/// previous turn. If the run must stop before the strategies have returned their changes, these are not applied.
pub(super) async fn inject_for_turn(run: &mut RunState<'_>) {
    recover_lost_tools(run).await;
    let turn = TurnContext::at(run.view());
    let injection = tokio::select! {
        biased;
        _ = run.stop.wait() => return,
        injection = run.conversation.strategy.begin_turn(&turn) => injection,
    };
    // The events must name the tool that triggered the changes. At the start of a turn, this is the search tool.
    if let Some(trigger) = ToolName::parse(SEARCH_TOOLS).filter(|_| !injection.is_none()) {
        apply_at_turn_start(run, injection, &trigger);
    }
    let caller = Caller::of(&run.context);
    if caller == run.conversation.caller {
        return;
    }
    let view = run.view();
    let changes = tokio::select! {
        biased;
        _ = run.stop.wait() => return,
        changes = run.conversation.strategy.change_caller(&view) => changes,
    };
    for change in changes {
        apply_at_turn_start(run, change.injection, &change.trigger);
    }
    run.conversation.caller = caller;
}

/// Applies changes before the first inference of a turn, and emits their events.
fn apply_at_turn_start(run: &mut RunState<'_>, injection: Injection, trigger: &ToolName) {
    let toolbox = &mut run.conversation.toolbox;
    let events = toolbox.apply_at_turn_start(injection, trigger);
    // No inference has been made in this turn, so the declared definitions may still change.
    toolbox.refresh_declared();
    if let Some(descriptions) = toolbox.descriptions(&events) {
        run.conversation.history.append_to_prompt(&descriptions);
        run.emit(&Event::PromptExtended { text: descriptions });
    }
    run.emit_and_record(&events);
}

/// Asks the strategies for the tools that a resume could not restore. A recovered tool may lead to further ones, for example a
/// facade to its inner tools. The tools that no strategy recovers stay lost; the next turn tries again.
pub(super) async fn recover_lost_tools(run: &mut RunState<'_>) {
    loop {
        let lost = run.conversation.toolbox.lost_tools();
        if lost.is_empty() {
            return;
        }
        let view = run.view();
        let recovered = tokio::select! {
            biased;
            _ = run.stop.wait() => return,
            recovered = run.conversation.strategy.recover(&lost, &view) => recovered,
        };
        let is_lost = |tool: &Arc<dyn Tool>| lost.contains(&tool.definition().id);
        let recovered: Vec<_> = recovered.into_iter().filter(is_lost).collect();
        if recovered.is_empty() {
            return;
        }
        for tool in recovered {
            tracing::info!(tool = %tool.definition().id, "a tool of the earlier process is available again");
            run.conversation.toolbox.rebind(tool);
        }
    }
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
    conversation
        .roles
        .apply(resolved, &Caller::of(context), &mut conversation.toolbox);
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
