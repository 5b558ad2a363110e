//! The text form that names a model and its provider, and the creation of the model's client.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::anthropic::Messages;
use crate::chat::ChatCompletions;
use crate::client::{ClientBuilder, Dialect, ModelClient};
use crate::environment::variable;
use crate::gemini::GenerateContent;
use crate::http::{KeyHeader, ModelProxy, Secret};
use crate::provider::{Provider, ProviderApi};
use crate::responses::Responses;
use crate::tool_prompt::ToolCallFormat;
use toolwit_agent::model::{ChatModel, ModelError, ScriptedModel};

/// A model and its provider, parsed from `PROVIDER:MODEL` or `PROVIDER:MODEL@BASE_URL`: `openai:gpt-5`,
/// `anthropic:claude-sonnet-4-5`, `ollama:llama3`, `openai:qwen3@http://127.0.0.1:8080/v1`. In `scripted:scenario.toml`,
/// the model is the path of a scenario file.
///
/// ```
/// use toolwit_models::ModelSpec;
///
/// let spec: ModelSpec = "openai:qwen3@http://127.0.0.1:8080/v1".parse()?;
/// assert_eq!(spec.to_string(), "openai:qwen3@http://127.0.0.1:8080/v1");
/// assert!("qwen3".parse::<ModelSpec>().is_err());
/// # Ok::<(), toolwit_agent::model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSpec {
    provider: &'static Provider,
    model: String,
    base_url: Option<String>,
    tool_call_format: ToolCallFormat,
    headers: Vec<(String, Secret)>,
    proxy: ModelProxy,
}

impl ModelSpec {
    /// Sets the format in which the model calls tools. The text form of a `ModelSpec` does not contain this format.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] if the model is scripted and the format is not
    /// [`Native`](ToolCallFormat::Native): the scenario file contains the calls of a scripted model.
    pub fn with_tool_calls(mut self, format: ToolCallFormat) -> Result<Self, ModelError> {
        if self.provider.api == ProviderApi::Scripted && format != ToolCallFormat::Native {
            return Err(ModelError::Configuration {
                message: "the format of tool calls cannot be set for a scripted model".to_owned(),
                suggestion: "use the format `native`, or a model behind an API".to_owned(),
            });
        }
        self.tool_call_format = format;
        Ok(self)
    }

    /// Adds a header to every request, as [`ClientBuilder::header`] does. A scripted model sends no requests.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.headers.push((name.into(), value));
        self
    }

    /// Sets the proxy through which requests are sent.
    #[must_use]
    pub fn with_proxy(mut self, proxy: ModelProxy) -> Self {
        self.proxy = proxy;
        self
    }

    /// Sets the base URL, which replaces the provider's default base URL.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] for a scripted model, which has no base URL.
    pub fn with_base_url(mut self, url: impl Into<String>) -> Result<Self, ModelError> {
        if self.provider.api == ProviderApi::Scripted {
            return Err(invalid_spec("a scripted model has no base URL".to_owned()));
        }
        self.base_url = Some(url.into());
        Ok(self)
    }
}

impl FromStr for ModelSpec {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let Some((provider, model_and_url)) = text.split_once(':') else {
            return Err(invalid_spec(format!("the model name `{text}` has no provider")));
        };
        let provider = match provider {
            "http" | "https" => return Err(invalid_spec("the base URL has no model name before it".to_owned())),
            name => Provider::named(name).ok_or_else(|| invalid_spec(format!("the provider `{name}` is unknown")))?,
        };
        let (model, base_url) = match provider.api {
            ProviderApi::Scripted => (model_and_url, None),
            _ => split_base_url(model_and_url),
        };
        if model.trim().is_empty() {
            return Err(invalid_spec(format!("`{provider}:` has no model name after it")));
        }
        Ok(Self {
            provider,
            model: model.to_owned(),
            base_url: base_url.map(str::to_owned),
            tool_call_format: ToolCallFormat::Native,
            headers: Vec::new(),
            proxy: ModelProxy::default(),
        })
    }
}

/// Splits `MODEL@BASE_URL` into the model and the base URL. An `@` without a URL after it belongs to the model.
fn split_base_url(text: &str) -> (&str, Option<&str>) {
    let separators = ["@http://", "@https://"];
    match separators.iter().filter_map(|separator| text.find(separator)).min() {
        Some(position) => (&text[..position], Some(&text[position + 1..])),
        None => (text, None),
    }
}

impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.provider, self.model)?;
        match &self.base_url {
            Some(url) => write!(f, "@{url}"),
            None => Ok(()),
        }
    }
}

/// Creates the client of a model, without sending a request. For a scripted model, reads the scenario file.
///
/// The key and the base URL come from the provider's environment variables, such as `OPENAI_API_KEY` and
/// `OPENAI_BASE_URL`. A base URL in the `ModelSpec` takes precedence. The key is read again before each request. For
/// `ollama`, no key is sent, and the base URL comes from the `ModelSpec` or else from `OLLAMA_HOST`.
///
/// # Errors
/// [`ModelError::Configuration`] as for [`ClientBuilder::build`], and if the base URL is missing, the key for an `https`
/// base URL is missing, or the scenario cannot be read or parsed; [`ModelError::Cancelled`] if the runtime shuts down.
pub async fn connect(spec: &ModelSpec) -> Result<Arc<dyn ChatModel>, ModelError> {
    if spec.provider.api == ProviderApi::Scripted {
        return Ok(Arc::new(ScriptedModel::load(&spec.model).await?));
    }
    let spec = spec.clone();
    // `build` reads the platform's root certificates, which blocks the thread.
    match tokio::task::spawn_blocking(move || http_model(spec)).await {
        Ok(model) => model,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(ModelError::Cancelled),
    }
}

/// Creates the client of a model that a provider serves over HTTP.
fn http_model(spec: ModelSpec) -> Result<Arc<dyn ChatModel>, ModelError> {
    let tool_call_format = spec.tool_call_format;
    let model: Arc<dyn ChatModel> = match spec.provider.api {
        ProviderApi::Responses => Arc::new(client_builder::<Responses>(spec)?.build()?),
        ProviderApi::Anthropic => Arc::new(client_builder::<Messages>(spec)?.build()?),
        ProviderApi::Gemini => Arc::new(client_builder::<GenerateContent>(spec)?.build()?),
        // `connect` does not call this function for a scripted model.
        ProviderApi::ChatCompletions | ProviderApi::Scripted => {
            Arc::new(client_builder::<ChatCompletions>(spec)?.build()?)
        }
    };
    Ok(tool_call_format.apply(model))
}

/// Returns the builder of a client, with the model's base URL and the provider's key.
fn client_builder<D: Dialect>(spec: ModelSpec) -> Result<ClientBuilder<D>, ModelError> {
    let provider = spec.provider;
    let base_url = spec.base_url.or_else(|| provider.base_url(variable));
    let base_url = base_url.ok_or_else(|| ModelError::Configuration {
        message: format!("there is no base URL for `{provider}`"),
        suggestion: format!("set the variable `{}`", provider.base_url_variables.join("` or `")),
    })?;
    let builder = ModelClient::<D>::builder(spec.model)
        .base_url(base_url)
        .proxy(spec.proxy);
    let headers = spec.headers.into_iter();
    let builder = headers.fold(builder, |builder, (name, value)| builder.header(name, value));
    let builder = if provider.name == "azure" {
        builder.key_header(KeyHeader::Named("api-key"))
    } else {
        builder
    };
    if provider.key_variables.is_empty() {
        return Ok(builder);
    }
    builder.key_from_variables(provider.key_variables, variable)
}

/// Returns the error of an invalid `ModelSpec`. It suggests the accepted forms.
fn invalid_spec(message: String) -> ModelError {
    let providers: Vec<_> = Provider::names().collect();
    ModelError::Configuration {
        message,
        suggestion: format!(
            "use `PROVIDER:MODEL` or `PROVIDER:MODEL@https://HOST/v1`; the providers are {}",
            providers.join(", ")
        ),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ModelSpec, ModelError> {
        text.parse()
    }

    #[test]
    fn specs_are_parsed_and_formatted_unchanged() {
        let valid_specs = [
            ("openai:gpt-5", "gpt-5", None),
            ("ollama:llama3:8b", "llama3:8b", None),
            ("openai:@cf/meta/llama", "@cf/meta/llama", None),
            (
                "openai:a@b@https://h/v1?x=@http://y",
                "a@b",
                Some("https://h/v1?x=@http://y"),
            ),
            ("scripted:dir/a@http://b.toml", "dir/a@http://b.toml", None),
        ];
        for (text, model, base_url) in valid_specs {
            let spec = parse(text).unwrap();
            assert_eq!((spec.model.as_str(), spec.base_url.as_deref()), (model, base_url));
            assert_eq!(spec.to_string(), text);
        }
    }

    #[test]
    fn an_invalid_spec_is_refused_with_the_providers_as_suggestion() {
        let invalid_specs = [
            ("gpt-5", "has no provider"),
            ("", "has no provider"),
            ("open-ai:gpt-5", "`open-ai` is unknown"),
            ("anthropic:", "has no model name"),
            ("http://127.0.0.1/v1", "has no model name"),
            ("openai:", "has no model name"),
            ("openai:@http://127.0.0.1/v1", "has no model name"),
        ];
        for (text, reason) in invalid_specs {
            let error = parse(text).unwrap_err();
            assert!(error.to_string().contains(reason), "{text}: {error}");
            for provider in ["openai", "anthropic", "gemini", "ollama", "scripted"] {
                assert!(error.suggestion().unwrap().contains(provider));
            }
        }
    }

    #[tokio::test]
    async fn each_spec_connects_to_its_model() {
        let connected_name = |text: &str| {
            let spec = parse(text).unwrap();
            async move { connect(&spec).await.map(|model| model.name().to_owned()) }
        };
        assert_eq!(
            connected_name("ollama:llama3:8b@http://127.0.0.1:1/v1").await,
            Ok("llama3:8b".to_owned())
        );
        for provider in Provider::names().filter(|name| *name != "scripted") {
            let spec = format!("{provider}:some-model@http://127.0.0.1:1/v1");
            assert_eq!(connected_name(&spec).await, Ok("some-model".to_owned()), "{spec}");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("greet.toml");
        std::fs::write(&path, "[[turn]]\nanswer = \"hi\"").unwrap();
        assert_eq!(
            connected_name(&format!("scripted:{}", path.display())).await,
            Ok("greet".to_owned())
        );
        assert!(connected_name("scripted:/no/such/scenario.toml").await.is_err());
        assert!(parse("scripted:a").unwrap().with_base_url("http://h").is_err());
        for format in [ToolCallFormat::Json, ToolCallFormat::Text] {
            assert!(parse("scripted:a").unwrap().with_tool_calls(format).is_err());
            let local = parse("ollama:m@http://127.0.0.1:1/v1").unwrap();
            let prompted = connect(&local.with_tool_calls(format).unwrap()).await.unwrap();
            assert_eq!(prompted.name(), "m");
        }
        let spec = parse("openai:m").unwrap().with_base_url("no url").unwrap();
        assert!(connect(&spec).await.is_err());
    }
}
