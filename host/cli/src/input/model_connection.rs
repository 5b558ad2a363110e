//! Options for the connection to a model, and for what the model accepts.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::environment::variable;
use toolwit::models::{ModelProxy, ModelSpec, Secret};
use toolwit::{Error, ErrorKind, Phase};

/// Options for the connection to a model, and for what the model accepts.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelConnectionFlags {
    /// Header of requests to the provider; ${VARIABLE} in the value is replaced; can be repeated
    #[arg(long = "model-header", value_name = "NAME=VALUE")]
    pub(super) headers: Vec<String>,
    /// Proxy for requests to the provider: a URL, or `environment` for HTTPS_PROXY and NO_PROXY [default: none]
    #[arg(long = "model-proxy", value_name = "PROXY")]
    pub(super) proxy: Option<String>,
    /// Whether the model takes pictures [default: known for common models, else no]
    #[arg(long, value_name = "YES|NO")]
    pictures: Option<PictureFlag>,
}

/// Whether a model takes pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PictureFlag {
    Yes,
    No,
}

impl ModelConnectionFlags {
    /// Returns whether the model takes pictures, if the options say so.
    pub(crate) fn accepts_pictures(&self) -> Option<bool> {
        self.pictures.map(|flag| flag == PictureFlag::Yes)
    }

    /// Adds the headers and the proxy to a model.
    ///
    /// # Errors
    /// If a header is not of the form `NAME=VALUE`, or a variable in it is not set.
    pub(crate) fn add_to(&self, spec: ModelSpec) -> Result<ModelSpec, Error> {
        let mut spec = spec;
        for header in &self.headers {
            let Some((name, value)) = header.split_once('=') else {
                return Err(invalid_header(
                    "a `--model-header` is not of the form NAME=VALUE".to_owned(),
                ));
            };
            let value = expand(value, |name| variable(name)?.into_string().ok())
                .map_err(|name| invalid_header(format!("the variable `{name}` of `--model-header` is not set")))?;
            spec = spec.with_header(name.trim(), Secret::new(value));
        }
        Ok(match &self.proxy {
            Some(proxy) => {
                // The error type of the parser has no values.
                let proxy: ModelProxy = proxy.parse().unwrap_or_default();
                spec.with_proxy(proxy)
            }
            None => spec,
        })
    }

    /// Returns whether a header contains a text that may be a credential. A reference to a variable contains none.
    pub(super) fn has_literal_headers(&self) -> bool {
        let mut values = self.headers.iter().filter_map(|header| header.split_once('='));
        values.any(|(_, value)| {
            let words = value
                .split_whitespace()
                .filter(|word| !word.eq_ignore_ascii_case("bearer"));
            words
                .clone()
                .any(|word| !(word.starts_with("${") && word.ends_with('}')))
        })
    }
}

/// Replaces each `${NAME}` in a text by the value of the variable.
///
/// # Errors
/// The name of a variable that is not set.
fn expand(text: &str, read_variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once("${") {
        let Some((name, after)) = reference.split_once('}') else {
            break;
        };
        expanded.push_str(before);
        expanded.push_str(&read_variable(name).ok_or_else(|| name.to_owned())?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

fn invalid_header(message: String) -> Error {
    Error::new(ErrorKind::Configuration, Phase::Model, message)
        .with_suggestion("pass a header such as `--model-header 'X-Team=${TEAM}'`")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_and_unset_variables_are_errors() {
        let read = |name: &str| (name == "TOKEN").then(|| "t".to_owned());
        assert_eq!(expand("Bearer ${TOKEN}!", read), Ok("Bearer t!".to_owned()));
        assert_eq!(expand("a ${TOKEN", read), Ok("a ${TOKEN".to_owned()));
        assert_eq!(expand("${OTHER}", read), Err("OTHER".to_owned()));
    }

    #[test]
    fn only_headers_without_literal_values_may_be_stored() {
        let has_literal = |header: &str| {
            let headers = vec![header.to_owned()];
            ModelConnectionFlags {
                headers,
                ..ModelConnectionFlags::default()
            }
            .has_literal_headers()
        };
        assert!(!has_literal("x-key=${KEY}") && !has_literal("authorization=Bearer ${KEY}"));
        assert!(has_literal("x-key=hunter2") && has_literal("x-key=${KEY} hunter2"));
    }
}
