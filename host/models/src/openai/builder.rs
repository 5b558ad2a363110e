//! Builds clients of the chat-completions API.

use std::time::Duration;

use super::client::OpenAi;
use super::max_tokens::MaxTokensField;
use crate::environment;
use crate::http::{Endpoint, EndpointAddress, PlainHttp, RequestLimits, RetryPolicy, Secret};
use toolwit_agent::model::ModelError;

/// The base URL of OpenAI's own API.
const BASE_URL_DEFAULT: &str = "https://api.openai.com/v1";

/// The host of that API.
const HOST_DEFAULT: &str = "api.openai.com";

/// The variable that holds the key.
const KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// The variable that holds the base URL of another provider.
const BASE_URL_VARIABLE: &str = "OPENAI_BASE_URL";

/// Builds an [`OpenAi`] client.
///
/// Defaults: OpenAI's own API, no key, a request timeout of 300 s (reasoning models may send nothing for minutes), a
/// connection timeout of 10 s, responses of at most 16 MiB, and three retries ([`RetryPolicy`]).
///
/// ```
/// use toolwit_models::{OpenAi, Secret};
///
/// let local = OpenAi::builder("qwen3:8b").base_url("http://127.0.0.1:11434/v1").build()?;
/// let hosted = OpenAi::builder("mistral-large-latest")
///     .base_url("https://api.mistral.ai/v1")
///     .key(Secret::new("…"))
///     .request_timeout_ms(60_000)
///     .build();
/// # let _ = (local, hosted);
/// # Ok::<(), toolwit_agent::model::ModelError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct OpenAiBuilder {
    model: String,
    base_url: String,
    key: Option<Secret>,
    plain_http: PlainHttp,
    max_tokens_field: Option<MaxTokensField>,
    limits: RequestLimits,
}

impl OpenAi {
    /// Creates a client with the key in `OPENAI_API_KEY`, and with the base URL in `OPENAI_BASE_URL` if that is set.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] as [`OpenAiBuilder::build`], and if the key is missing for an `https` base URL.
    pub fn from_env(model: impl AsRef<str>) -> Result<Self, ModelError> {
        OpenAiBuilder::from_variables(model.as_ref(), None, environment::variable)?.build()
    }

    /// Starts building a client.
    pub fn builder(model: impl Into<String>) -> OpenAiBuilder {
        OpenAiBuilder::new(model)
    }
}

impl OpenAiBuilder {
    fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            base_url: BASE_URL_DEFAULT.to_owned(),
            key: None,
            plain_http: PlainHttp::default(),
            max_tokens_field: None,
            limits: RequestLimits {
                request_timeout: Duration::from_secs(300),
                connect_timeout: Duration::from_secs(10),
                response_bytes_max: 16 << 20,
                retry: RetryPolicy::default(),
            },
        }
    }

    /// Reads key and base URL from `OPENAI_API_KEY` and `OPENAI_BASE_URL`. An explicit base URL takes precedence.
    pub(crate) fn from_variables(
        model: &str,
        base_url: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ModelError> {
        let mut builder = Self::new(model);
        if let Some(base_url) = base_url.map(str::to_owned).or_else(|| variable(BASE_URL_VARIABLE)) {
            builder = builder.base_url(base_url);
        }
        match variable(KEY_VARIABLE) {
            Some(key) => Ok(builder.key(Secret::new(key))),
            // Over plain HTTP a key is optional, since it may not be sent.
            None if !builder.address()?.is_encrypted() => Ok(builder),
            None => Err(no_key(builder.address()?.host())),
        }
    }

    /// Sets the base URL of another provider, to which `chat/completions` is appended.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// Sets the key. A local server usually does not need one.
    pub fn key(mut self, key: Secret) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets whether the key may be sent over plain HTTP.
    pub fn plain_http(mut self, plain: PlainHttp) -> Self {
        self.plain_http = plain;
        self
    }

    /// Sets the timeout of a request, from the connection to the last byte, in milliseconds.
    pub fn request_timeout_ms(mut self, millis: u64) -> Self {
        self.limits.request_timeout = Duration::from_millis(millis);
        self
    }

    /// Sets the timeout of a connection attempt, in milliseconds.
    pub fn connect_timeout_ms(mut self, millis: u64) -> Self {
        self.limits.connect_timeout = Duration::from_millis(millis);
        self
    }

    /// Sets the largest response, in bytes.
    pub fn response_bytes_max(mut self, bytes: usize) -> Self {
        self.limits.response_bytes_max = bytes;
        self
    }

    /// Sets the retry policy.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.limits.retry = policy;
        self
    }

    /// Sets the field that limits the tokens of a response. The default is `max_completion_tokens` for OpenAI's own API and
    /// `max_tokens` for others.
    pub fn max_tokens_field(mut self, field: MaxTokensField) -> Self {
        self.max_tokens_field = Some(field);
        self
    }

    /// Creates the client. No request is sent.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] if the base URL is invalid, if OpenAI's own API is used without a key, if the key is not a
    /// valid header value or would be sent to another machine over plain HTTP, or if the machine has no root certificates.
    pub fn build(self) -> Result<OpenAi, ModelError> {
        let address = self.address()?;
        let is_openai = address.host() == HOST_DEFAULT;
        if is_openai && self.key.is_none() {
            return Err(no_key(HOST_DEFAULT));
        }
        let default_field = if is_openai {
            MaxTokensField::MaxCompletionTokens
        } else {
            MaxTokensField::MaxTokens
        };
        let field = self.max_tokens_field.unwrap_or(default_field);
        let endpoint = Endpoint::new(address, self.key, self.plain_http, self.limits)?;
        Ok(OpenAi::new(self.model, endpoint, field))
    }

    fn address(&self) -> Result<EndpointAddress, ModelError> {
        EndpointAddress::below(&self.base_url, &["chat", "completions"])
    }
}

fn no_key(host: &str) -> ModelError {
    ModelError::Configuration {
        message: format!("there is no key for `{host}`"),
        suggestion: format!("set the variable `{KEY_VARIABLE}`, or use a local model such as `ollama:NAME`"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn from(base_url: Option<&str>, variables: &[(&str, &str)]) -> Result<OpenAiBuilder, ModelError> {
        OpenAiBuilder::from_variables("m", base_url, |name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_missing_key_is_refused_with_its_variable_unless_it_is_optional() {
        let needs_key = [None, Some("https://api.mistral.ai/v1")];
        for base_url in needs_key {
            let error = from(base_url, &[]).unwrap_err();
            assert!(error.suggestion().unwrap().contains("`OPENAI_API_KEY`"), "{error}");
        }
        for base_url in ["http://127.0.0.1:8080/v1", "http://gpu-box:8000/v1"] {
            assert!(from(Some(base_url), &[]).unwrap().build().is_ok(), "{base_url}");
        }
        assert!(
            OpenAi::builder("m")
                .build()
                .unwrap_err()
                .to_string()
                .contains("api.openai.com")
        );
    }

    #[test]
    fn a_key_over_plain_http_to_another_machine_is_refused_and_never_shown() {
        let variables = [
            ("OPENAI_API_KEY", "sk-secret"),
            ("OPENAI_BASE_URL", "http://gpu-box/v1"),
        ];
        let builder = from(None, &variables).unwrap();
        assert!(!format!("{builder:?}").contains("sk-secret"));
        let error = builder.clone().build().unwrap_err();
        assert!(error.to_string().contains("`gpu-box` over plain HTTP"), "{error}");
        let allowed = builder.plain_http(PlainHttp::AnyHost).build().unwrap();
        assert!(!format!("{allowed:?}").contains("sk-secret"));
        let local = from(Some("http://localhost:1/v1"), &variables).unwrap();
        assert!(local.build().is_ok(), "an explicit base URL takes precedence");
    }

    #[test]
    fn a_key_that_is_not_a_valid_header_value_is_refused_without_showing_it() {
        for key in ["", "  ", "sk-\u{7f}secret", "sk-\nsecret"] {
            let local = OpenAi::builder("m").base_url("http://127.0.0.1:1/v1");
            let error = local.key(Secret::new(key)).build().unwrap_err();
            assert!(error.to_string().contains("the key is empty") && !format!("{error:?}").contains("secret"));
        }
    }

    #[test]
    fn no_process_wide_crypto_provider_is_installed() {
        let local = OpenAi::builder("m").base_url("http://127.0.0.1:1/v1").build();
        assert!(local.is_ok() && rustls::crypto::CryptoProvider::get_default().is_none());
    }
}
