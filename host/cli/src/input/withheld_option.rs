//! The options that a session does not store, because they can contain credentials.

use serde::{Deserialize, Serialize};
use url::Url;

use super::run_options::RunOptions;

/// An option with a URL or a header, which can contain credentials.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WithheldOption {
    Model,
    BaseUrl,
    ModelHeader,
    ModelProxy,
}

impl WithheldOption {
    /// Returns the option on the command line.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Self::Model => "--model",
            Self::BaseUrl => "--base-url",
            Self::ModelHeader => "--model-header",
            Self::ModelProxy => "--model-proxy",
        }
    }

    /// Returns whether the options have this option.
    pub(super) fn is_set(self, options: &RunOptions) -> bool {
        match self {
            Self::Model => options.model.is_some(),
            // A model can include its base URL: `openai:NAME@URL`.
            Self::BaseUrl => options.base_url.is_some() || options.model.is_some(),
            Self::ModelHeader => !options.model_connection.headers.is_empty(),
            Self::ModelProxy => options.model_connection.proxy.is_some(),
        }
    }
}

/// Removes the options whose URL or header can contain credentials, and returns the removed options.
pub(super) fn withhold_credentials(options: &mut RunOptions) -> Vec<WithheldOption> {
    let mut withheld = Vec::new();
    let fields = [
        (WithheldOption::Model, &mut options.model),
        (WithheldOption::BaseUrl, &mut options.base_url),
        (WithheldOption::ModelProxy, &mut options.model_connection.proxy),
    ];
    for (option, value) in fields {
        if value.take_if(|value| may_have_credentials(value, option)).is_some() {
            withheld.push(option);
        }
    }
    if options.model_connection.has_literal_headers() {
        options.model_connection.headers.clear();
        withheld.push(WithheldOption::ModelHeader);
    }
    withheld
}

/// Returns whether the URL in the value of an option has a component that can contain credentials: a user, a password, a
/// query or a fragment. Also returns `true` for an invalid URL.
fn may_have_credentials(value: &str, option: WithheldOption) -> bool {
    // Schemes are not case-sensitive. ASCII lower case keeps all positions, so `start` is a position in `value` too.
    let lower = value.to_ascii_lowercase();
    let start = ["http://", "https://"]
        .iter()
        .filter_map(|scheme| lower.find(scheme))
        .min();
    match (start, option) {
        (None, WithheldOption::Model) => false,
        (None, WithheldOption::ModelProxy) => value != "environment" && value != "none",
        (start, _) => Url::parse(&value[start.unwrap_or_default()..]).map_or(true, |url| {
            !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some()
        }),
    }
}
