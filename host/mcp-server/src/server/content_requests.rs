//! Requests for prompts, resources and completion.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, CompleteRequestParams, CompleteResult, GetPromptRequestParams, GetPromptResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams, ReadResourceResult,
};
use serde_json::json;

use crate::content::{PluginDocs, ServedContent, complete};
use crate::principal::Principal;
use crate::wire;

/// How long a client may use a list or a resource, in milliseconds. A notification reports a change earlier.
const CONTENT_TTL_MS: u64 = 60_000;

/// The content of a server for one principal.
pub(super) struct ContentRequests<'p> {
    pub(super) content: Arc<ServedContent>,
    pub(super) principal: &'p Principal,
}

impl ContentRequests<'_> {
    pub(super) fn prompts(&self, request: Option<PaginatedRequestParams>) -> Result<ListPromptsResult, ErrorData> {
        let (prompts, next) = wire::slice(self.content.prompts(), |prompt| &prompt.name, cursor(&request))?;
        let mut result = ListPromptsResult::with_all_items(prompts);
        result.next_cursor = next;
        Ok(result.with_ttl_ms(CONTENT_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    pub(super) fn prompt(&self, request: GetPromptRequestParams) -> Result<GetPromptResult, ErrorData> {
        let prompt = self.content.prompt(&request.name).ok_or_else(|| {
            let name: String = request.name.chars().take(80).collect();
            wire::invalid_params(format!("no prompt is named `{}`", name.escape_debug()))
        })?;
        let values = prompt.arguments(request.arguments).map_err(wire::invalid_params)?;
        if let Some(missing) = prompt.missing(&values) {
            return Err(wire::invalid_params(format!("the argument `{}` is missing", missing.name)));
        }
        let messages = self.content.messages(prompt, &values).map_err(|problem| {
            tracing::error!(prompt = prompt.name(), problem, "a prompt cannot be read");
            unreadable()
        })?;
        let result = GetPromptResult::new(messages);
        Ok(match prompt.description() {
            Some(description) => result.with_description(description),
            None => result,
        })
    }

    pub(super) fn resources(&self, request: Option<PaginatedRequestParams>) -> Result<ListResourcesResult, ErrorData> {
        let mut resources = self.content.resources();
        resources.extend(PluginDocs(self.principal).resources());
        let (resources, next) = wire::slice(resources, |resource| &resource.uri, cursor(&request))?;
        let mut result = ListResourcesResult::with_all_items(resources);
        result.next_cursor = next;
        Ok(result.with_ttl_ms(CONTENT_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    pub(super) fn templates(
        &self,
        request: Option<PaginatedRequestParams>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = self.content.templates();
        let (templates, next) = wire::slice(templates, |template| &template.uri_template, cursor(&request))?;
        let mut result = ListResourceTemplatesResult::with_all_items(templates);
        result.next_cursor = next;
        Ok(result.with_ttl_ms(CONTENT_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    pub(super) fn resource(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        let contents = match self.content.resource(uri) {
            Some(Ok(contents)) => contents,
            Some(Err(problem)) => {
                tracing::error!(uri, problem, "a resource cannot be read");
                return Err(not_found(uri));
            }
            None => PluginDocs(self.principal).read(uri).ok_or_else(|| not_found(uri))?,
        };
        let result = ReadResourceResult::new(vec![contents]);
        Ok(result.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    pub(super) fn complete(&self, request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
        let completion = complete(&self.content, &request.r#ref, &request.argument);
        completion.map(CompleteResult::new).map_err(wire::invalid_params)
    }
}

fn cursor(request: &Option<PaginatedRequestParams>) -> Option<&str> {
    request.as_ref()?.cursor.as_deref()
}

fn not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("the resource does not exist", Some(json!({"uri": uri})))
}

fn unreadable() -> ErrorData {
    ErrorData::internal_error("the prompt cannot be read; the log of the server has the reason", None)
}
