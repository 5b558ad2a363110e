//! The builder of a [`ModelClient`].

use std::time::Duration;

use super::dialect::Dialect;
use super::model_client::ModelClient;
use crate::environment;
use crate::http::{
    Authentication, Endpoint, EndpointAddress, EndpointOptions, ExtraHeader, KeyHeader, KeySource, ModelProxy,
    PlainHttp, RequestLimits, ResponseMode, RetryPolicy, Secret,
};
use toolwit_agent::model::ModelError;

/// Builds a client of a model.
///
/// Defaults: the base URL of the provider that defines the API, no key, streamed responses, a request timeout of 300 s
/// (reasoning models may send nothing for minutes), a connection timeout of 10 s, responses of at most 16 MiB, and three
/// retries ([`RetryPolicy`]).
///
/// ```
/// use toolwit_models::{Anthropic, OpenAi, Secret};
///
/// let local = OpenAi::builder("qwen3:8b").base_url("http://127.0.0.1:11434/v1").build()?;
/// let hosted = Anthropic::builder("claude-sonnet-4-5")
///     .key(Secret::new("…"))
///     .request_timeout_ms(60_000)
///     .build();
/// # let _ = (local, hosted);
/// # Ok::<(), toolwit_agent::model::ModelError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ClientBuilder<D> {
    model: String,
    base_url: String,
    authentication: Authentication,
    /// The environment variable that an error suggests if the key is missing. `None` if the key is not read from one.
    key_variable: Option<&'static str>,
    extra_headers: Vec<ExtraHeader>,
    proxy: ModelProxy,
    mode: ResponseMode,
    limits: RequestLimits,
    pub(crate) dialect: D,
}

impl<D: Dialect> ModelClient<D> {
    /// Creates a client with the key and the base URL in the provider's environment variables, such as `OPENAI_API_KEY` and
    /// `OPENAI_BASE_URL`. The key is read again before each request.
    ///
    /// # Errors
    /// Those of [`ClientBuilder::build`], and [`ModelError::Configuration`] if the key is missing for an `https` base URL.
    pub fn from_env(model: impl AsRef<str>) -> Result<Self, ModelError> {
        let profile = D::PROFILE;
        let base_url = profile
            .base_url_variables
            .iter()
            .find_map(|name| environment::variable(name));
        let builder = ClientBuilder::new(model.as_ref());
        let builder = match base_url {
            Some(base_url) => builder.base_url(base_url),
            None => builder,
        };
        builder
            .key_from_variables(profile.key_variables, environment::variable)?
            .build()
    }

    /// Starts building a client.
    pub fn builder(model: impl Into<String>) -> ClientBuilder<D> {
        ClientBuilder::new(model)
    }
}

impl<D: Dialect> ClientBuilder<D> {
    fn new(model: impl Into<String>) -> Self {
        let profile = D::PROFILE;
        Self {
            model: model.into(),
            base_url: profile.base_url.to_owned(),
            authentication: Authentication {
                key: None,
                header: profile.key_header,
                plain_http: PlainHttp::default(),
            },
            key_variable: None,
            extra_headers: Vec::new(),
            proxy: ModelProxy::default(),
            mode: ResponseMode::default(),
            limits: RequestLimits {
                request_timeout: Duration::from_secs(300),
                connect_timeout: Duration::from_secs(10),
                end_timeout: Duration::from_secs(3),
                response_bytes_max: 16 << 20,
                retry: RetryPolicy::default(),
            },
            dialect: D::default(),
        }
    }

    /// Reads the key from the first of these environment variables that is set, before each request. `read_variable` returns
    /// the value of a variable.
    ///
    /// Over plain HTTP, a key is optional: if no variable is set when this method is called, no request has a key.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] if the base URL is invalid, or if it is an `https` URL and no variable is set.
    pub(crate) fn key_from_variables(
        mut self,
        variables: &'static [&'static str],
        read_variable: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self, ModelError> {
        self.key_variable = variables.first().copied();
        let read_key = move || variables.iter().find_map(|name| read_variable(name)).map(Secret::new);
        let address = self.address()?;
        if read_key().is_some() {
            return Ok(self.key_source(read_key));
        }
        if address.is_encrypted() {
            return Err(self.missing_key_error(address.host()));
        }
        Ok(self)
    }

    /// Sets the base URL of another provider or server with the same API.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// Sets the key. A local server usually does not need a key.
    pub fn key(self, key: Secret) -> Self {
        self.key_source(move || Some(key.clone()))
    }

    /// Sets a function that returns the key. It is called when the client is built and before each request, and must not
    /// block. If it returns `None`, the request has no key.
    pub fn key_source(mut self, read_key: impl Fn() -> Option<Secret> + Send + Sync + 'static) -> Self {
        self.authentication.key = Some(KeySource::new(read_key));
        self
    }

    /// Sets the header that carries the key.
    pub fn key_header(mut self, header: KeyHeader) -> Self {
        self.authentication.header = header;
        self
    }

    /// Sets to which hosts the key may be sent over plain HTTP.
    pub fn plain_http(mut self, plain: PlainHttp) -> Self {
        self.authentication.plain_http = plain;
        self
    }

    /// Adds a header to every request, such as one that a gateway requires. Its value does not appear in logs or errors. Like a
    /// key, it is sent to other machines over HTTPS only, unless [`plain_http`](Self::plain_http) allows more.
    pub fn header(mut self, name: impl Into<String>, value: Secret) -> Self {
        let name = name.into();
        self.extra_headers.push(ExtraHeader { name, value });
        self
    }

    /// Sets the proxy through which requests are sent.
    pub fn proxy(mut self, proxy: ModelProxy) -> Self {
        self.proxy = proxy;
        self
    }

    /// Sets whether responses are streamed or arrive when they are complete.
    pub fn response_mode(mut self, mode: ResponseMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the timeout of a request, in milliseconds. For a response that is not streamed, this is the maximum time until its
    /// last byte. For a streamed response, it is the maximum time until its headers, and then until each piece. A stream that
    /// takes longer than both an hour and this timeout fails.
    pub fn request_timeout_ms(mut self, millis: u64) -> Self {
        self.limits.request_timeout = Duration::from_millis(millis);
        self
    }

    /// Sets the timeout of a connection attempt, in milliseconds.
    pub fn connect_timeout_ms(mut self, millis: u64) -> Self {
        self.limits.connect_timeout = Duration::from_millis(millis);
        self
    }

    /// Sets the time without a further event after which a streamed response is complete although its end mark is missing.
    #[cfg(test)]
    pub(crate) fn end_timeout_ms(mut self, millis: u64) -> Self {
        self.limits.end_timeout = Duration::from_millis(millis);
        self
    }

    /// Sets the maximum size of a response, in bytes. The events of a stream repeat names and ids. Therefore, their total size
    /// may be up to 64 times this maximum.
    pub fn response_bytes_max(mut self, bytes: usize) -> Self {
        self.limits.response_bytes_max = bytes;
        self
    }

    /// Sets the retry policy.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.limits.retry = policy;
        self
    }

    /// Creates the client. No request is sent.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] if
    /// - the base URL is invalid,
    /// - there is no key and the base URL has the host of the default base URL,
    /// - the key or an extra header is not a valid header value, or would be sent to another machine over plain HTTP although
    ///   [`plain_http`](Self::plain_http) does not allow it,
    /// - the URL of the proxy is invalid, or
    /// - TLS is needed and the machine has no root certificates.
    pub fn build(self) -> Result<ModelClient<D>, ModelError> {
        let profile = D::PROFILE;
        let address = self.address()?;
        let host = address.host().to_owned();
        let default_address = EndpointAddress::from_base_url(profile.base_url, "")?;
        let has_key = self.authentication.key.as_ref().and_then(KeySource::read).is_some();
        if default_address.host() == host && !has_key {
            return Err(self.missing_key_error(&host));
        }
        let block_issuer = format!("{}:{host}", profile.name);
        let dialect = self.dialect.with_defaults_for(&host, &self.model);
        let options = EndpointOptions {
            authentication: self.authentication,
            headers: profile.headers,
            extra_headers: self.extra_headers,
            proxy: self.proxy,
            mode: self.mode,
            limits: self.limits,
        };
        let endpoint = Endpoint::new(address, options)?;
        Ok(ModelClient::new(self.model, block_issuer, endpoint, dialect))
    }

    fn address(&self) -> Result<EndpointAddress, ModelError> {
        let (path, query) = D::path(&self.model, self.mode);
        let address = EndpointAddress::from_base_url(&self.base_url, &path)?;
        Ok(match query {
            Some((name, value)) => address.with_query(name, value),
            None => address,
        })
    }

    /// Returns the error of a missing key. It suggests setting an environment variable if the client reads its key from one,
    /// and otherwise setting the key with the builder.
    fn missing_key_error(&self, host: &str) -> ModelError {
        let suggestion = match (self.key_variable, D::PROFILE.key_variables.first()) {
            (Some(variable), _) => format!("set the variable `{variable}`, or use a local model such as `ollama:NAME`"),
            (None, Some(variable)) => {
                format!("set the key with `key`, or create the client with `from_env`, which reads `{variable}`")
            }
            (None, None) => "set the key with `key`".to_owned(),
        };
        ModelError::Configuration {
            message: format!("there is no key for `{host}`"),
            suggestion,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::chat::{OpenAi, OpenAiBuilder};

    /// Returns a builder whose key comes from the variable `OPENAI_API_KEY` with this value.
    fn builder_with_variable(base_url: Option<&str>, key: Option<&'static str>) -> Result<OpenAiBuilder, ModelError> {
        let builder = OpenAi::builder("m").base_url(base_url.unwrap_or("https://api.openai.com/v1"));
        builder.key_from_variables(&["OPENAI_API_KEY"], move |name| {
            key.filter(|_| name == "OPENAI_API_KEY").map(str::to_owned)
        })
    }

    #[test]
    fn a_missing_key_is_an_error_that_suggests_its_variable_unless_the_key_is_optional() {
        for base_url in [None, Some("https://api.mistral.ai/v1")] {
            let error = builder_with_variable(base_url, None).unwrap_err();
            assert!(error.suggestion().unwrap().contains("`OPENAI_API_KEY`"), "{error}");
        }
        for base_url in ["http://127.0.0.1:8080/v1", "http://gpu-box:8000/v1"] {
            assert!(
                builder_with_variable(Some(base_url), None).unwrap().build().is_ok(),
                "{base_url}"
            );
        }
    }

    #[test]
    fn a_missing_key_error_suggests_to_set_a_variable_only_if_the_builder_reads_it() {
        let without_key = OpenAi::builder("m");
        for builder in [without_key.clone(), without_key.key_source(|| None)] {
            let error = builder.build().unwrap_err();
            assert!(error.to_string().contains("api.openai.com"), "{error}");
            assert_eq!(
                error.suggestion().unwrap(),
                "set the key with `key`, or create the client with `from_env`, which reads `OPENAI_API_KEY`"
            );
        }
        let reads_variable = builder_with_variable(Some("http://api.openai.com/v1"), None).unwrap();
        let error = reads_variable.build().unwrap_err();
        assert!(
            error
                .suggestion()
                .unwrap()
                .starts_with("set the variable `OPENAI_API_KEY`"),
            "{error}"
        );
    }

    #[test]
    fn a_key_over_plain_http_to_another_machine_is_refused_and_never_shown() {
        let builder = builder_with_variable(Some("http://gpu-box/v1"), Some("sk-secret")).unwrap();
        assert!(!format!("{builder:?}").contains("sk-secret"));
        let error = builder.clone().build().unwrap_err();
        assert!(error.to_string().contains("`gpu-box` over plain HTTP"), "{error}");
        let allowed = builder.plain_http(PlainHttp::AnyHost).build().unwrap();
        assert!(!format!("{allowed:?}").contains("sk-secret"));
        let local = builder_with_variable(Some("http://localhost:1/v1"), Some("sk-secret")).unwrap();
        assert!(local.build().is_ok());
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
    fn a_client_needs_no_process_wide_crypto_provider() {
        let local = OpenAi::builder("m").base_url("http://127.0.0.1:1/v1").build();
        assert!(local.is_ok(), "{local:?}");
    }
}
