//! `tool-invoke` of `near:agent/host`: calls granted tools.

use serde_json::Value;

use super::Context;
use crate::link::host::host_api::call_tool;
use toolwit_core::ToolResult;

/// Calls a granted tool for a guest. The inner error is returned to the guest; the outer one traps it.
///
/// The grant names the id of a tool. The guest names the tool by its id, or by the last part of the id: `search` for
/// `web/search@1.0.0#search`.
pub(super) async fn invoke(
    store: &mut Context<'_>,
    alias: &str,
    arguments: &str,
) -> wasmtime::Result<Result<String, String>> {
    let granted_id = find_granted_id(store, alias)?;
    // Unless exactly one tool matches, `call_tool` denies the alias, and records the denial for the operator.
    let id = granted_id.as_deref().unwrap_or(alias);
    Ok(match call_tool(store, id, arguments).await? {
        Ok(result) if result.is_error() => Err(result.content()),
        Ok(result) => Ok(json_text(&result)),
        Err(error) => Err(error.report().to_string()),
    })
}

/// Returns the id of the granted tool to which an alias refers. Returns `None` if no granted tool matches the alias, or several.
fn find_granted_id(store: &mut Context<'_>, alias: &str) -> wasmtime::Result<Option<String>> {
    let granted_ids = &store.data_mut().authority()?.rights.effective.rules.tools;
    if granted_ids.iter().any(|id| id == alias) {
        return Ok(Some(alias.to_owned()));
    }
    let mut matches = granted_ids
        .iter()
        .filter(|id| id.rsplit(['#', '/']).next() == Some(alias));
    Ok(match (matches.next(), matches.next()) {
        (Some(id), None) => Some(id.clone()),
        _ => None,
    })
}

/// Returns the value of a result as JSON text, or its text as a JSON string if it has no value.
fn json_text(result: &ToolResult) -> String {
    let value = result.value.clone().unwrap_or_else(|| Value::String(result.content()));
    value.to_string()
}
