//! The providers that a [`ModelSpec`](crate::ModelSpec) can name.

use std::fmt;

use crate::ollama;

/// The API of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProviderApi {
    ChatCompletions,
    Responses,
    Anthropic,
    Gemini,
    /// No API: a scripted model takes its responses from a scenario file.
    Scripted,
}

/// A provider: its API, its default base URL, and the environment variables for its base URL and its key.
#[derive(Debug)]
pub(crate) struct Provider {
    /// The name, as in `openai:gpt-5`.
    pub(crate) name: &'static str,
    pub(crate) api: ProviderApi,
    /// The default base URL. A base URL in an environment variable or in the [`ModelSpec`](crate::ModelSpec) takes
    /// precedence. `None` for Azure, whose base URL differs for each customer, for Ollama, whose base URL follows from
    /// `OLLAMA_HOST`, and for scripted models.
    pub(crate) base_url: Option<&'static str>,
    /// The environment variables that can hold another base URL. The first one that is set counts.
    pub(crate) base_url_variables: &'static [&'static str],
    /// The environment variables that can hold the key. The first one that is set counts.
    pub(crate) key_variables: &'static [&'static str],
}

/// The providers, in the order in which error messages list them.
const PROVIDERS: &[Provider] = &[
    Provider {
        name: "openai",
        api: ProviderApi::ChatCompletions,
        base_url: Some("https://api.openai.com/v1"),
        base_url_variables: &["OPENAI_BASE_URL"],
        key_variables: &["OPENAI_API_KEY"],
    },
    Provider {
        name: "openai-responses",
        api: ProviderApi::Responses,
        base_url: Some("https://api.openai.com/v1"),
        base_url_variables: &["OPENAI_BASE_URL"],
        key_variables: &["OPENAI_API_KEY"],
    },
    Provider {
        name: "anthropic",
        api: ProviderApi::Anthropic,
        base_url: Some("https://api.anthropic.com"),
        base_url_variables: &["ANTHROPIC_BASE_URL"],
        key_variables: &["ANTHROPIC_API_KEY"],
    },
    Provider {
        name: "gemini",
        api: ProviderApi::Gemini,
        base_url: Some("https://generativelanguage.googleapis.com"),
        base_url_variables: &["GEMINI_BASE_URL"],
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    },
    Provider {
        name: "azure",
        api: ProviderApi::ChatCompletions,
        base_url: None,
        base_url_variables: &["AZURE_OPENAI_BASE_URL"],
        key_variables: &["AZURE_OPENAI_API_KEY"],
    },
    Provider {
        name: "openrouter",
        api: ProviderApi::ChatCompletions,
        base_url: Some("https://openrouter.ai/api/v1"),
        base_url_variables: &[],
        key_variables: &["OPENROUTER_API_KEY"],
    },
    Provider {
        name: "groq",
        api: ProviderApi::ChatCompletions,
        base_url: Some("https://api.groq.com/openai/v1"),
        base_url_variables: &[],
        key_variables: &["GROQ_API_KEY"],
    },
    Provider {
        name: "deepseek",
        api: ProviderApi::ChatCompletions,
        base_url: Some("https://api.deepseek.com/v1"),
        base_url_variables: &[],
        key_variables: &["DEEPSEEK_API_KEY"],
    },
    Provider {
        name: "mistral",
        api: ProviderApi::ChatCompletions,
        base_url: Some("https://api.mistral.ai/v1"),
        base_url_variables: &[],
        key_variables: &["MISTRAL_API_KEY"],
    },
    Provider {
        name: "vllm",
        api: ProviderApi::ChatCompletions,
        base_url: Some("http://127.0.0.1:8000/v1"),
        base_url_variables: &["VLLM_BASE_URL"],
        key_variables: &["VLLM_API_KEY"],
    },
    Provider {
        name: "llamacpp",
        api: ProviderApi::ChatCompletions,
        base_url: Some("http://127.0.0.1:8080/v1"),
        base_url_variables: &["LLAMACPP_BASE_URL"],
        key_variables: &["LLAMA_API_KEY"],
    },
    Provider {
        name: "ollama",
        api: ProviderApi::ChatCompletions,
        base_url: None,
        base_url_variables: &[],
        key_variables: &[],
    },
    Provider {
        name: "scripted",
        api: ProviderApi::Scripted,
        base_url: None,
        base_url_variables: &[],
        key_variables: &[],
    },
];

impl Provider {
    /// Returns the provider with this name, or `None` for an unknown name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }

    /// Returns the names of all providers.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        PROVIDERS.iter().map(|provider| provider.name)
    }

    /// Returns the base URL from an environment variable, or else the default base URL. Returns `None` if neither
    /// exists. `read_variable` returns the value of an environment variable.
    pub(crate) fn base_url(&self, read_variable: impl Fn(&str) -> Option<String>) -> Option<String> {
        if self.name == "ollama" {
            return Some(ollama::base_url(
                &read_variable(ollama::HOST_VARIABLE).unwrap_or_default(),
            ));
        }
        let from_variable = self.base_url_variables.iter().find_map(|name| read_variable(name));
        from_variable.or_else(|| self.base_url.map(str::to_owned))
    }
}

impl PartialEq for Provider {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Provider {}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
