//! The memory of answers that the client has not read yet.

use rmcp::model::{CallToolResponse, GetPromptResponse};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::Serialize;

use crate::pending::PendingRequest;

/// The error for an answer that would take too much memory. The request itself was carried out.
const UNREAD_ANSWERS: &str = "the request was carried out, but its answer is dropped: earlier answers that the client has not read take \
                              too much memory";

/// Reserves memory for an answer until the client has read it, and returns the answer.
///
/// # Errors
/// If the answers that the client has not read yet take too much memory.
pub(super) fn reserve<T: Serialize>(request: &RequestContext<RoleServer>, answer: T) -> Result<T, ErrorData> {
    check(request, &answer).map(|()| answer)
}

/// Reserves memory for the answer to a call; see [`reserve`].
pub(super) fn reserve_for_call(
    request: &RequestContext<RoleServer>,
    answer: CallToolResponse,
) -> Result<CallToolResponse, ErrorData> {
    match &answer {
        CallToolResponse::Complete(result) => check(request, result).map(|()| answer),
        _ => Ok(answer),
    }
}

/// Reserves memory for the messages of a prompt; see [`reserve`].
pub(super) fn reserve_for_prompt(
    request: &RequestContext<RoleServer>,
    answer: GetPromptResponse,
) -> Result<GetPromptResponse, ErrorData> {
    match &answer {
        GetPromptResponse::Complete(prompt) => check(request, prompt).map(|()| answer),
        _ => Ok(answer),
    }
}

fn check(request: &RequestContext<RoleServer>, answer: &impl Serialize) -> Result<(), ErrorData> {
    match PendingRequest::of(&request.extensions) {
        Some(pending) if !pending.reserve_answer(answer) => Err(ErrorData::internal_error(UNREAD_ANSWERS, None)),
        _ => Ok(()),
    }
}
