//! The models of an application, chosen by name, by role, or automatically.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::error::ModelError;
use super::port::ChatModel;

/// A function that returns the name of the model for a task, or `None` for the default model.
type SelectionRule = dyn Fn(&ModelTask<'_>) -> Option<String> + Send + Sync;

/// The task for which a model is chosen.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ModelTask<'a> {
    /// Description of the agent or conversation.
    pub description: &'a str,
    /// Number of tools of the agent or conversation.
    pub tool_count: usize,
}

impl<'a> ModelTask<'a> {
    /// Creates a task.
    #[must_use]
    pub fn new(description: &'a str, tool_count: usize) -> Self {
        Self {
            description,
            tool_count,
        }
    }
}

/// The choice of a model.
#[derive(Clone, Default)]
pub enum ModelChoice {
    /// The default model.
    #[default]
    Default,
    /// The model with this name.
    Name(String),
    /// The model with this role, such as `smart` or `fast`.
    Role(String),
    /// The model that the application's rule selects for the task, or the default model if the rule selects none.
    Auto,
    /// This model.
    Model(Arc<dyn ChatModel>),
}

impl ModelChoice {
    /// Creates the choice of the model with this role.
    #[must_use]
    pub fn role(role: impl Into<String>) -> Self {
        Self::Role(role.into())
    }
}

/// Converts the name of a model to the choice of that model.
impl From<&str> for ModelChoice {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<String> for ModelChoice {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

impl From<Arc<dyn ChatModel>> for ModelChoice {
    fn from(model: Arc<dyn ChatModel>) -> Self {
        Self::Model(model)
    }
}

impl fmt::Debug for ModelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("Default"),
            Self::Name(name) => f.debug_tuple("Name").field(name).finish(),
            Self::Role(role) => f.debug_tuple("Role").field(role).finish(),
            Self::Auto => f.write_str("Auto"),
            Self::Model(model) => f.debug_tuple("Model").field(&model.name()).finish(),
        }
    }
}

/// The models of an application.
///
/// ```
/// use toolwit_agent::model::{ModelChoice, Models, ScriptedModel, ModelTask};
///
/// # fn example(small: ScriptedModel, large: ScriptedModel) -> Result<(), toolwit_agent::model::ModelError> {
/// let models = Models::new()
///     .with_model("small", small)
///     .with_model("large", large)
///     .with_role("smart", "large")
///     .with_default("small")
///     .with_auto(|task| (task.tool_count > 10).then(|| "large".to_owned()));
/// let smart = models.choose(&ModelChoice::role("smart"), &ModelTask::default())?;
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Models {
    by_name: BTreeMap<String, Arc<dyn ChatModel>>,
    /// The names of the models, by role.
    roles: BTreeMap<String, String>,
    /// The name of the default model.
    default: Option<String>,
    /// The rule for [`ModelChoice::Auto`].
    auto_rule: Option<Arc<SelectionRule>>,
}

impl Models {
    /// Creates a collection without models.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a model under a name. The first model is the default model, unless [`with_default`](Self::with_default) sets
    /// another one.
    #[must_use]
    pub fn with_model(mut self, name: impl Into<String>, model: impl ChatModel + 'static) -> Self {
        let name = name.into();
        self.default.get_or_insert_with(|| name.clone());
        self.by_name.insert(name, Arc::new(model));
        self
    }

    /// Assigns a role to the model with this name.
    #[must_use]
    pub fn with_role(mut self, role: impl Into<String>, name: impl Into<String>) -> Self {
        self.roles.insert(role.into(), name.into());
        self
    }

    /// Sets the name of the default model.
    #[must_use]
    pub fn with_default(mut self, name: impl Into<String>) -> Self {
        self.default = Some(name.into());
        self
    }

    /// Sets the rule that selects a model by task. If it returns `None`, the default model is used.
    #[must_use]
    pub fn with_auto(mut self, rule: impl Fn(&ModelTask<'_>) -> Option<String> + Send + Sync + 'static) -> Self {
        self.auto_rule = Some(Arc::new(rule));
        self
    }

    /// Returns the chosen model.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] for an unknown name or role, with a list of the existing ones, or if there is no default
    /// model and the choice requires it.
    pub fn choose(&self, choice: &ModelChoice, task: &ModelTask<'_>) -> Result<Arc<dyn ChatModel>, ModelError> {
        match choice {
            ModelChoice::Model(model) => Ok(model.clone()),
            ModelChoice::Name(name) => self.find_by_name(name),
            ModelChoice::Role(role) => match self.roles.get(role) {
                Some(name) => self.find_by_name(name),
                None => Err(unknown_choice(
                    "no model has the role",
                    role,
                    "roles",
                    self.roles.keys(),
                )),
            },
            ModelChoice::Auto => match self.auto_rule.as_ref().and_then(|rule| rule(task)) {
                Some(name) => self.find_by_name(&name),
                None => self.default_model(),
            },
            ModelChoice::Default => self.default_model(),
        }
    }

    fn default_model(&self) -> Result<Arc<dyn ChatModel>, ModelError> {
        match &self.default {
            Some(name) => self.find_by_name(name),
            None => Err(ModelError::Configuration {
                message: "there is no default model".to_owned(),
                suggestion: "add a model with `Models::with_model`".to_owned(),
            }),
        }
    }

    fn find_by_name(&self, name: &str) -> Result<Arc<dyn ChatModel>, ModelError> {
        let model = self.by_name.get(name).cloned();
        model.ok_or_else(|| unknown_choice("no model is named", name, "models", self.by_name.keys()))
    }
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("named", &self.by_name.keys().collect::<Vec<_>>())
            .field("roles", &self.roles)
            .field("default", &self.default)
            .finish_non_exhaustive()
    }
}

/// Returns the error for a name or a role that does not exist, with a list of the `existing` names or roles. `noun` is "models"
/// or "roles".
fn unknown_choice<'a>(problem: &str, name: &str, noun: &str, existing: impl Iterator<Item = &'a String>) -> ModelError {
    let quoted: Vec<_> = existing.map(|name| format!("`{name}`")).collect();
    let suggestion = if quoted.is_empty() {
        format!("there are no {noun}; add one to the `Models`")
    } else {
        format!("the {noun} are {}", quoted.join(", "))
    };
    ModelError::Configuration {
        message: format!("{problem} `{name}`"),
        suggestion,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::ScriptedModel;

    fn models() -> Models {
        let model = |name: &str| ScriptedModel::new().with_name(name);
        Models::new()
            .with_model("small", model("small-1"))
            .with_model("large", model("large-9"))
            .with_role("smart", "large")
            .with_role("broken", "gone")
            .with_auto(|task| (task.tool_count > 10).then(|| "large".to_owned()))
    }

    /// Chooses a model for a task with this number of tools, and returns the name of the model.
    fn chosen_name(choice: impl Into<ModelChoice>, tool_count: usize) -> Result<String, ModelError> {
        let task = ModelTask::new("sorts mail", tool_count);
        models()
            .choose(&choice.into(), &task)
            .map(|model| model.name().to_owned())
    }

    // accept: 141
    #[test]
    fn a_model_is_chosen_by_name_by_role_by_default_or_by_rule() {
        assert_eq!(chosen_name("large", 0).unwrap(), "large-9");
        assert_eq!(chosen_name(ModelChoice::role("smart"), 0).unwrap(), "large-9");
        assert_eq!(chosen_name(ModelChoice::Default, 0).unwrap(), "small-1");
        assert_eq!(chosen_name(ModelChoice::Auto, 3).unwrap(), "small-1");
        assert_eq!(chosen_name(ModelChoice::Auto, 30).unwrap(), "large-9");
    }

    // accept: 141
    #[test]
    fn an_unknown_name_or_role_is_refused_with_a_list_of_the_existing_ones() {
        let error = chosen_name("huge", 0).unwrap_err();
        assert_eq!(error.suggestion().unwrap(), "the models are `large`, `small`");
        let error = chosen_name(ModelChoice::role("cheap"), 0).unwrap_err();
        assert_eq!(error.suggestion().unwrap(), "the roles are `broken`, `smart`");
        assert!(chosen_name(ModelChoice::role("broken"), 0).is_err());
        assert!(
            Models::new()
                .choose(&ModelChoice::Default, &ModelTask::default())
                .is_err()
        );
    }
}
