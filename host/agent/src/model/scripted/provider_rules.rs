//! The rules that providers enforce for the history and the tools of a request.

use std::collections::{HashSet, VecDeque};

use crate::model::ChatRequest;
use toolwit_core::Role;

/// Returns the reason why a provider would reject the request, or `None` if the request is valid. Reasons are: a call
/// without a result, a result without a call, a duplicate result, results out of order, two calls of one response with
/// the same id, two tools with the same name, and an empty history.
///
/// These rules are stricter than those of most providers, so that providers accept every request that a scripted model accepts.
pub(super) fn flaw(request: ChatRequest<'_>) -> Option<String> {
    if request.messages.is_empty() {
        return Some("the history is empty".to_owned());
    }
    let mut names = HashSet::new();
    if let Some(tool) = request.tools.iter().find(|tool| !names.insert(&tool.name)) {
        return Some(format!("the tool `{}` is declared twice", tool.name));
    }
    let mut unanswered: VecDeque<&str> = VecDeque::new();
    for message in request.messages {
        if let Role::Tool { tool_call_id, .. } = &message.role {
            match unanswered.pop_front() {
                Some(id) if id == tool_call_id => continue,
                Some(id) => {
                    return Some(format!(
                        "the history has the result of the call `{tool_call_id}` where the result of `{id}` is expected"
                    ));
                }
                None => {
                    return Some(format!(
                        "the history has a result of the call `{tool_call_id}`, but not the call"
                    ));
                }
            }
        }
        if let Some(id) = unanswered.front() {
            return Some(format!("the call `{id}` has no result"));
        }
        let mut call_ids = HashSet::new();
        for call in message.tool_calls() {
            if !call_ids.insert(call.id.as_str()) {
                return Some(format!("two calls share the id `{}`", call.id));
            }
            unanswered.push_back(&call.id);
        }
    }
    unanswered.front().map(|id| format!("the call `{id}` has no result"))
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::model::ChatOptions;
    use toolwit_core::{Message, ToolCall};

    fn flaw_of(messages: &[Message]) -> Option<String> {
        let (options, cancel) = (ChatOptions::default(), CancellationToken::new());
        flaw(ChatRequest::new(messages, &[], &options, &cancel))
    }

    // accept: 133
    #[test]
    fn a_history_that_a_provider_would_refuse_is_refused() {
        let [a, b] = ["a", "b"].map(|id| ToolCall {
            id: id.into(),
            name: "f".into(),
            arguments: "{}".into(),
        });
        let (user, result) = (Message::user("hi"), |call: &ToolCall| Message::tool(call, "1", false));
        let response = Message::assistant("", vec![a.clone(), b.clone()]);
        let valid = [
            user.clone(),
            response.clone(),
            result(&a),
            result(&b),
            Message::assistant("done", vec![]),
        ];
        assert_eq!(flaw_of(&valid), None);
        let invalid = [
            vec![],
            vec![user.clone(), response.clone(), result(&a)],
            vec![user.clone(), response.clone(), result(&a), user.clone()],
            vec![user.clone(), response.clone(), result(&b), result(&a)],
            vec![user.clone(), response.clone(), result(&a), result(&a)],
            vec![user.clone(), result(&a)],
            vec![
                user,
                Message::assistant("", vec![a.clone(), a.clone()]),
                result(&a),
                result(&a),
            ],
        ];
        for history in invalid {
            assert!(flaw_of(&history).is_some(), "{history:?}");
        }
    }
}
