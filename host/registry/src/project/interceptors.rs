//! The interceptors that a project or an operator configures.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::package::check_name;
use toolwit_core::{Error, ErrorKind, Phase};

/// The settings of an interceptor: a plugin that wraps the calls of tools and exports `toolwit:plugin/interceptor`.
///
/// The text form is `PLUGIN` for every tool, or `PLUGIN=TOOL,TOOL` for the tools with these names or ids.
///
/// ```
/// use toolwit_registry::InterceptorSettings;
///
/// let quota: InterceptorSettings = "quota=bank#pay,search".parse()?;
/// assert_eq!(quota.tools, ["bank#pay", "search"]);
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct InterceptorSettings {
    /// The name of the plugin.
    pub plugin: String,
    /// The names or ids of the tools that it wraps. An empty list stands for every tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

impl InterceptorSettings {
    /// Creates the settings of a plugin that wraps every tool.
    #[must_use]
    pub fn of_every_tool(plugin: impl Into<String>) -> Self {
        Self {
            plugin: plugin.into(),
            tools: Vec::new(),
        }
    }
}

impl FromStr for InterceptorSettings {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = |why: String| {
            let message = format!("`{text}` is not an interceptor: {why}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("use `PLUGIN`, or `PLUGIN=TOOL,TOOL` for some tools only")
        };
        let (plugin, tools) = match text.split_once('=') {
            Some((plugin, tools)) => (plugin, tools.split(',').map(|tool| tool.trim().to_owned()).collect()),
            None => (text, Vec::new()),
        };
        check_name(plugin).map_err(|why| invalid(format!("the name of the plugin {why}")))?;
        if tools.iter().any(String::is_empty) {
            return Err(invalid("the name of a tool is missing".to_owned()));
        }
        Ok(Self {
            plugin: plugin.to_owned(),
            tools,
        })
    }
}

impl fmt::Display for InterceptorSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plugin)?;
        if self.tools.is_empty() {
            return Ok(());
        }
        write!(f, "={}", self.tools.join(","))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn text_form_names_a_plugin_and_its_tools() {
        for text in ["redact", "quota=bank#pay,search"] {
            assert_eq!(text.parse::<InterceptorSettings>().unwrap().to_string(), text);
        }
        let spaced: InterceptorSettings = "quota=a, b".parse().unwrap();
        assert_eq!(spaced.to_string(), "quota=a,b");
        for text in ["", "=x", "quota=", "quota=a,,b", "../quota", "native"] {
            let error = text.parse::<InterceptorSettings>().unwrap_err();
            assert_eq!(error.kind, ErrorKind::Configuration, "{text}");
        }
    }
}
