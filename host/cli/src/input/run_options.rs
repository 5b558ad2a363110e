//! The options of a run that its session stores: the model, the tools and the limits.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approvals::ApprovalFlags;
use super::budget::BudgetFlags;
use super::environment::variable;
use super::exposure::{DeliveryFlag, ExposureFlag};
use super::interceptors::InterceptorFlags;
use super::limits::{LimitFlags, RunLimitFlags};
use super::mcp::McpFlags;
use super::model_connection::ModelConnectionFlags;
use super::model_options::ModelOptionFlags;
use super::paths::absolute;
use super::plugins::{GrantAndSecretFlags, PluginFlags};
use toolwit::limits::Span;
use toolwit::models::ModelSpec;
use toolwit::registry::Project;
use toolwit::{Error, ErrorKind, Phase};

/// The options of a run that its session stores, so that later runs of the session continue with them.
///
/// The command line has precedence over the session, and the session over the environment. Only for the paths of grants
/// and policies, the environment has precedence over the session.
///
/// Grants, secrets and policies are stored as paths only, because each run reads their content again.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RunOptions {
    /// Model: PROVIDER:NAME, such as openai:gpt-5, or scripted:FILE [env: TOOLWIT_MODEL]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Base URL of the provider's API, usually ending in /v1 [default: that of the provider]
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// System prompt
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Tools that the model sees at the start [default: all if there are few, else search]
    #[arg(long, value_name = "MODE")]
    pub(crate) exposure: Option<ExposureFlag>,
    /// Delivery of tools to the model [default: list]
    #[arg(long, value_name = "MODE")]
    pub(crate) delivery: Option<DeliveryFlag>,
    /// Role whose tools the model receives, instead of all tools; can be repeated
    #[arg(long = "role", value_name = "ROLE")]
    pub(crate) roles: Vec<String>,
    /// Path to the file with the tool groups of roles [default: toolwit.toml]
    #[arg(long, value_name = "FILE")]
    pub(crate) groups: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plugins: PluginFlags,
    #[command(flatten)]
    pub(crate) mcp: McpFlags,
    #[command(flatten)]
    // Sessions store these options under this name.
    #[serde(rename = "authority")]
    pub(crate) grants_and_secrets: GrantAndSecretFlags,
    #[command(flatten)]
    pub(crate) interceptors: InterceptorFlags,
    #[command(flatten)]
    pub(crate) approvals: ApprovalFlags,
    #[command(flatten)]
    pub(crate) model_options: ModelOptionFlags,
    #[command(flatten)]
    pub(crate) model_connection: ModelConnectionFlags,
    #[command(flatten)]
    pub(crate) budget: BudgetFlags,
    #[command(flatten)]
    pub(crate) run_limits: RunLimitFlags,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    /// The time for which a call waits for its approval if there is no terminal. `None` if calls do not wait.
    #[clap(skip)]
    pub(crate) ask_later: Option<Span>,
}

/// The environment variable with the model, used if neither an option nor the session names one.
const MODEL_VARIABLE: &str = "TOOLWIT_MODEL";

impl RunOptions {
    /// Returns the model that the options or the environment name, if any.
    pub(crate) fn model(&self) -> Option<String> {
        let variable = || variable(MODEL_VARIABLE)?.into_string().ok();
        self.model.clone().or_else(variable)
    }

    /// Returns the model with its provider and the options of the connection.
    ///
    /// # Errors
    /// If no model is named, or the name or an option of the connection is not valid.
    pub(crate) fn model_spec(&self) -> Result<ModelSpec, Error> {
        let Some(name) = self.model() else {
            let message = "no model was given";
            return Err(Error::new(ErrorKind::Configuration, Phase::Model, message)
                .with_suggestion("pass `--model openai:NAME`, or set TOOLWIT_MODEL"));
        };
        let mut spec: ModelSpec = name.parse()?;
        if let Some(url) = &self.base_url {
            spec = spec.with_base_url(url)?;
        }
        if let Some(format) = self.model_options.tool_calls() {
            spec = spec.with_tool_calls(format)?;
        }
        self.model_connection.add_to(spec)
    }

    /// Returns the options for use in another directory and another environment.
    ///
    /// # Errors
    /// If one of these cannot be read: the current directory, the configuration of the project, or the record of the
    /// project settings that the user accepted.
    pub(crate) fn for_other_directory(&self) -> Result<Self, Error> {
        let mut options = self.clone();
        options.model = self.model().as_deref().map(with_absolute_scenario).transpose()?;
        if !self.roles.is_empty() && self.groups.is_none() {
            options.groups = Some(PathBuf::from(Project::FILE_NAME));
        }
        options.groups = options.groups.as_deref().map(absolute).transpose()?;
        options.plugins = self.plugins.for_other_directory()?;
        options.mcp = self.mcp.for_other_directory()?;
        options.grants_and_secrets = self.grants_and_secrets.for_other_directory()?;
        options.interceptors = self.interceptors.for_other_directory()?;
        options.approvals = self.approvals.for_other_directory()?;
        options.budget = self.budget.for_other_directory()?;
        Ok(options)
    }

    /// Returns these options. An option that is not set has the value that the session stored.
    ///
    /// # Errors
    /// If a stored value is not valid.
    pub(crate) fn completed_with(&self, stored: &Self) -> Result<Self, serde_json::Error> {
        let mut base = without_unset(serde_json::to_value(stored)?);
        if self.mcp.is_set() {
            // `--mcp FILE` replaces `--no-mcp` of the session, and `--no-mcp` replaces `--mcp FILE` of the session.
            base.as_object_mut().and_then(|options| options.shift_remove("mcp"));
        }
        merge_into(&mut base, without_unset(serde_json::to_value(self)?));
        serde_json::from_value(base)
    }
}

/// Replaces the path in the name of a scripted model, such as `scripted:FILE`, by its absolute form. Returns the names
/// of other models unchanged.
fn with_absolute_scenario(model: &str) -> Result<String, Error> {
    match model.strip_prefix("scripted:") {
        Some(file) => Ok(format!("scripted:{}", absolute(file.as_ref())?.display())),
        None => Ok(model.to_owned()),
    }
}

/// Removes the options that are not set, including empty lists and switches that are off.
pub(super) fn without_unset(options: Value) -> Value {
    let is_set = |value: &Value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(values) => !values.is_empty(),
        Value::Object(options) => !options.is_empty(),
        _ => true,
    };
    match options {
        Value::Object(options) => {
            let options = options.into_iter().map(|(name, value)| (name, without_unset(value)));
            Value::Object(options.filter(|(_, value)| is_set(value)).collect())
        }
        value => value,
    }
}

/// Replaces values in `base` with the options that are set. Groups of options are merged.
fn merge_into(base: &mut Value, options: Value) {
    match (base, options) {
        (Value::Object(base), Value::Object(options)) => {
            for (name, value) in options {
                merge_into(base.entry(name).or_insert(Value::Null), value);
            }
        }
        (base, value) => *base = value,
    }
}
