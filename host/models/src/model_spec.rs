//! Model names and the clients that they create.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use toolwit_agent::model::{ChatModel, ModelError};

/// The accepted forms of a model name, for error messages.
const NAME_FORMS: &str =
    "use `openai:MODEL`, `openai:MODEL@http://127.0.0.1:8080/v1`, `ollama:MODEL` or `scripted:FILE`";

/// The name of a model and its provider: `openai:gpt-5`, `ollama:llama3`, `scripted:scenario.toml`,
/// `openai:qwen3@http://127.0.0.1:8080/v1`.
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
    provider: Provider,
    model: String,
    base_url: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provider {
    OpenAi,
    Ollama,
    Scripted,
}

impl ModelSpec {
    /// Sets another base URL.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] for a scripted model, which has no base URL.
    pub fn with_base_url(mut self, url: impl Into<String>) -> Result<Self, ModelError> {
        if self.provider == Provider::Scripted {
            return Err(invalid("a scripted model has no base URL".to_owned()));
        }
        self.base_url = Some(url.into());
        Ok(self)
    }
}

impl FromStr for ModelSpec {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Self, ModelError> {
        let Some((provider, rest)) = text.split_once(':') else {
            return Err(invalid(format!("the model name `{text}` has no provider")));
        };
        let provider = match provider {
            "openai" => Provider::OpenAi,
            "ollama" => Provider::Ollama,
            "scripted" => Provider::Scripted,
            "anthropic" => return Err(invalid("the provider `anthropic` is not supported yet".to_owned())),
            "http" | "https" => return Err(invalid("the base URL has no model name before it".to_owned())),
            other => return Err(invalid(format!("the provider `{other}` is unknown"))),
        };
        let (model, base_url) = match provider {
            Provider::Scripted => (rest, None),
            Provider::OpenAi | Provider::Ollama => split_base_url(rest),
        };
        if model.trim().is_empty() {
            return Err(invalid(format!("`{provider}:` has no model name after it")));
        }
        Ok(Self {
            provider,
            model: model.to_owned(),
            base_url: base_url.map(str::to_owned),
        })
    }
}

/// Splits a name into model and base URL. An `@` that does not start a URL belongs to the model.
fn split_base_url(text: &str) -> (&str, Option<&str>) {
    let marks = ["@http://", "@https://"];
    match marks.iter().filter_map(|mark| text.find(mark)).min() {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenAi => "openai",
            Self::Ollama => "ollama",
            Self::Scripted => "scripted",
        })
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

/// Creates the client of a model. No request is sent; a scenario is read from its file.
///
/// `openai:` reads the key from `OPENAI_API_KEY`, and the base URL from the name or `OPENAI_BASE_URL`. `ollama:` sends no
/// key, and takes the base URL from the name or `OLLAMA_HOST`. Its default is port 11434 of this machine.
///
/// # Errors
/// [`ModelError::Configuration`] if the key is missing, the base URL is invalid, or the scenario cannot be read or parsed.
pub async fn connect(spec: &ModelSpec) -> Result<Arc<dyn ChatModel>, ModelError> {
    match spec.provider {
        Provider::OpenAi | Provider::Ollama => over_http(spec).await,
        Provider::Scripted => scripted(spec).await,
    }
}

async fn over_http(spec: &ModelSpec) -> Result<Arc<dyn ChatModel>, ModelError> {
    use crate::environment::variable;
    use crate::ollama;
    use crate::openai::{OpenAi, OpenAiBuilder};

    let spec = spec.clone();
    let build = move || match spec.provider {
        Provider::Ollama => {
            let host = variable(ollama::HOST_VARIABLE).unwrap_or_default();
            let base_url = spec.base_url.unwrap_or_else(|| ollama::base_url(&host));
            OpenAi::builder(spec.model).base_url(base_url).build()
        }
        _ => OpenAiBuilder::from_variables(&spec.model, spec.base_url.as_deref(), variable)?.build(),
    };
    // Reading the platform's root certificates blocks.
    match tokio::task::spawn_blocking(build).await {
        Ok(built) => Ok(Arc::new(built?)),
        Err(_) => Err(ModelError::Cancelled),
    }
}

async fn scripted(spec: &ModelSpec) -> Result<Arc<dyn ChatModel>, ModelError> {
    Ok(Arc::new(toolwit_agent::model::ScriptedModel::load(&spec.model).await?))
}

fn invalid(message: String) -> ModelError {
    ModelError::Configuration {
        message,
        suggestion: NAME_FORMS.to_owned(),
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
    fn names_are_parsed_and_formatted_unchanged() {
        let valid = [
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
        for (text, model, base_url) in valid {
            let spec = parse(text).unwrap();
            assert_eq!((spec.model.as_str(), spec.base_url.as_deref()), (model, base_url));
            assert_eq!(spec.to_string(), text);
        }
    }

    #[test]
    fn an_invalid_name_is_refused_with_the_accepted_forms() {
        let invalid_names = [
            ("gpt-5", "has no provider"),
            ("", "has no provider"),
            ("open-ai:gpt-5", "`open-ai` is unknown"),
            ("anthropic:claude", "`anthropic` is not supported yet"),
            ("http://127.0.0.1/v1", "has no model name"),
            ("openai:", "has no model name"),
            ("openai:@http://127.0.0.1/v1", "has no model name"),
        ];
        for (text, why) in invalid_names {
            let error = parse(text).unwrap_err();
            assert!(error.to_string().contains(why), "{text}: {error}");
            for known in ["openai:", "ollama:", "scripted:"] {
                assert!(error.suggestion().unwrap().contains(known));
            }
        }
    }

    #[tokio::test]
    async fn each_name_connects_to_its_model() {
        let named = |text: &str| {
            let spec = parse(text).unwrap();
            async move { connect(&spec).await.map(|model| model.name().to_owned()) }
        };
        assert_eq!(
            named("ollama:llama3:8b@http://127.0.0.1:1/v1").await,
            Ok("llama3:8b".to_owned())
        );
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("greet.toml");
        std::fs::write(&path, "[[turn]]\nanswer = \"hi\"").unwrap();
        assert_eq!(
            named(&format!("scripted:{}", path.display())).await,
            Ok("greet".to_owned())
        );
        assert!(named("scripted:/no/such/scenario.toml").await.is_err());
        assert!(parse("scripted:a").unwrap().with_base_url("http://h").is_err());
        let moved = parse("openai:m").unwrap().with_base_url("no url").unwrap();
        assert!(connect(&moved).await.is_err());
    }
}
