//! Requests for prompts, resources and completion.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{
    CacheScope, CompleteRequestParams, CompleteResult, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams, PromptMessage,
    ReadResourceResult, ResourceContents,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::json;

use crate::client::{ClientRequest, InputRound, McpClient, QuestionBinding, QuestionSealer};
use crate::content::{MissingArgument, PluginDocs, ServedContent, ServedPrompt, UiPages, complete};
use crate::principal::Principal;
use crate::wire::{self, Revision};

/// How long a client may cache a list, in milliseconds. If the list changes earlier, a notification reports the
/// change.
const CONTENT_TTL_MS: u64 = 60_000;

/// Answers the requests of one principal for prompts, resources and completion.
pub(super) struct ContentRequests<'p> {
    pub(super) content: Arc<ServedContent>,
    pub(super) principal: &'p Principal,
}

impl ContentRequests<'_> {
    pub(super) fn prompts(&self, request: Option<PaginatedRequestParams>) -> Result<ListPromptsResult, ErrorData> {
        let (prompts, next) = wire::page_items(self.content.prompts(), |prompt| &prompt.name, cursor(&request))?;
        let mut result = ListPromptsResult::with_all_items(prompts);
        result.next_cursor = next;
        Ok(result.with_ttl_ms(CONTENT_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    /// Returns the messages of a prompt. Asks the user for each missing argument that has a question.
    pub(super) async fn prompt(
        &self,
        request: GetPromptRequestParams,
        context: &RequestContext<RoleServer>,
        questions: &QuestionSealer,
    ) -> Result<GetPromptResponse, ErrorData> {
        let prompt = self.content.prompt(&request.name).ok_or_else(|| {
            let name: String = request.name.chars().take(80).collect();
            wire::invalid_params(format!("no prompt is named `{}`", name.escape_debug()))
        })?;
        let arguments = request.arguments.unwrap_or_default();
        let values = prompt
            .check_arguments(arguments.clone())
            .map_err(wire::invalid_params)?;
        let request_name = format!("prompts/get {}", prompt.name());
        let binding = QuestionBinding {
            principal: self.principal.name(),
            group: self.principal.group(),
            tool: &request_name,
            arguments: &arguments,
        };
        let round = match Revision::of(context) {
            Revision::Session => None,
            Revision::Stateless => {
                let (state, responses) = (request.request_state.as_deref(), request.input_responses.as_ref());
                let round = InputRound::begin(questions, &binding, state, responses);
                Some(Arc::new(round.map_err(wire::invalid_params)?))
            }
        };
        let (client, mut outbox) = McpClient::of_request(context, round.clone(), None);
        let completed = tokio::select! {
            completed = ask_missing_arguments(prompt, values, &client) => completed,
            never = outbox.send() => match never {},
        };
        if let Some(round) = round
            && let Some(question) = round.input_required_result(questions, &binding)?
        {
            return Ok(GetPromptResponse::InputRequired(question));
        }
        let messages = self.messages(prompt.name(), completed?).await?;
        let result = GetPromptResult::new(messages);
        Ok(GetPromptResponse::Complete(match prompt.description() {
            Some(description) => result.with_description(description),
            None => result,
        }))
    }

    /// Reads the messages of a prompt on a thread for blocking tasks.
    async fn messages(&self, name: &str, values: BTreeMap<String, String>) -> Result<Vec<PromptMessage>, ErrorData> {
        let (content, prompt_name) = (self.content.clone(), name.to_owned());
        let reading = tokio::task::spawn_blocking(move || {
            let prompt = content.prompt(&prompt_name).ok_or("the prompt does not exist")?;
            content.messages(prompt, &values)
        });
        let messages = reading.await.map_err(|_panic| unreadable())?;
        messages.map_err(|problem| {
            tracing::error!(prompt = name, problem, "a prompt cannot be read");
            unreadable()
        })
    }

    /// Lists the resources. Includes the user interfaces of plugins if the client can show them.
    pub(super) fn resources(
        &self,
        request: Option<PaginatedRequestParams>,
        supports_ui: bool,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut resources = self.content.resources();
        resources.extend(PluginDocs(self.principal).resources());
        if supports_ui {
            resources.extend(UiPages(self.principal).resources());
        }
        let (resources, next) = wire::page_items(resources, |resource| &resource.uri, cursor(&request))?;
        let mut result = ListResourcesResult::with_all_items(resources);
        result.next_cursor = next;
        Ok(result.with_ttl_ms(CONTENT_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    pub(super) fn templates(
        &self,
        request: Option<PaginatedRequestParams>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = self.content.templates();
        let (templates, next) = wire::page_items(templates, |template| &template.uri_template, cursor(&request))?;
        let mut result = ListResourceTemplatesResult::with_all_items(templates);
        result.next_cursor = next;
        Ok(result.with_ttl_ms(CONTENT_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    pub(super) async fn resource(&self, uri: String) -> Result<ReadResourceResult, ErrorData> {
        let (content, principal) = (self.content.clone(), self.principal.clone());
        let reading = tokio::task::spawn_blocking(move || read_resource(&content, &principal, &uri));
        let contents = reading.await.map_err(|_panic| unreadable())??;
        let result = ReadResourceResult::new(vec![contents]);
        Ok(result.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    pub(super) fn complete(&self, request: &CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
        let completion = complete(&self.content, &request.r#ref, &request.argument);
        completion.map(CompleteResult::new).map_err(wire::invalid_params)
    }
}

/// Reads a resource. Blocks the thread.
fn read_resource(content: &ServedContent, principal: &Principal, uri: &str) -> Result<ResourceContents, ErrorData> {
    let contents = content
        .resource(uri)
        .or_else(|| PluginDocs(principal).read(uri).map(Ok))
        .or_else(|| UiPages(principal).read(uri))
        .ok_or_else(|| not_found(uri))?;
    contents.map_err(|problem| {
        tracing::error!(uri, problem, "a resource cannot be read");
        unreadable()
    })
}

/// Asks the user for the missing arguments of a prompt, and returns all arguments.
///
/// # Errors
/// If a missing argument has no question, the client cannot answer questions, or the user does not give the argument.
async fn ask_missing_arguments(
    prompt: &ServedPrompt,
    mut values: BTreeMap<String, String>,
    client: &McpClient,
) -> Result<BTreeMap<String, String>, ErrorData> {
    while let Some(MissingArgument { name, question }) = prompt.first_missing(&values) {
        let missing_error = |problem: &str| wire::invalid_params(format!("the argument `{name}` is missing{problem}"));
        let question = question.ok_or_else(|| missing_error(""))?;
        let form = ClientRequest::Form {
            message: question.to_owned(),
            schema: json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}),
        };
        if !client.can_answer(&form) {
            return Err(missing_error(""));
        }
        let key = format!("argument_{name}");
        let answers = client.ask([(key.as_str(), form)]).await;
        let answers = answers.map_err(|error| missing_error(&format!(": {error}")))?;
        let answer = &answers[&key];
        let value = answer["content"][name].as_str();
        let value = value.filter(|_| answer["action"] == "accept");
        let value = value.ok_or_else(|| missing_error(", and the user did not give it"))?;
        values.insert(name.to_owned(), value.to_owned());
    }
    Ok(values)
}

fn cursor(request: &Option<PaginatedRequestParams>) -> Option<&str> {
    request.as_ref()?.cursor.as_deref()
}

fn not_found(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("the resource does not exist", Some(json!({"uri": uri})))
}

fn unreadable() -> ErrorData {
    ErrorData::internal_error("the content cannot be read; the log of the server has the reason", None)
}
