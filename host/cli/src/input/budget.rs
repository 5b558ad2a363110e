//! Options for the cost of a run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::call_arguments::read_text;
use super::configuration::configuration_file;
use super::paths::absolute_if_set;
use tokio_util::sync::CancellationToken;
use toolwit::agent::Budget;
use toolwit::limits::PROJECT_BYTES_MAX;
use toolwit::model::{ChatModel, Cost, DescribedModel, ModelTable};
use toolwit::{Error, ErrorKind, Phase};

/// Options for the cost of a run, and for the tools that show the budget to its model.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Budget of the run")]
pub(crate) struct BudgetFlags {
    /// Maximum cost in US dollars, such as 0.50 [default: unlimited]
    #[arg(long, value_name = "USD")]
    cost: Option<f64>,
    /// Path to a file with prices, context sizes and picture support of models [default: toolwit/models.toml in the configuration
    /// directory]
    #[arg(long, value_name = "FILE")]
    model_table: Option<PathBuf>,
    /// Give the model tools that show its budget and usage
    #[arg(long)]
    pub(crate) budget_tools: bool,
}

impl BudgetFlags {
    /// Returns the flags for use in another directory: with absolute paths.
    pub(crate) fn for_other_directory(&self) -> Result<Self, Error> {
        Ok(Self {
            model_table: absolute_if_set(self.model_table.clone())?,
            ..self.clone()
        })
    }

    /// Sets the limit on the cost and the model table to those of a trace, if the options do not set them.
    pub(crate) fn with_trace_defaults(mut self, cost: Option<&String>, table: Option<&String>) -> Self {
        self.cost = self.cost.or(cost.and_then(|cost| cost.parse().ok()));
        self.model_table = self.model_table.or(table.map(PathBuf::from));
        self
    }

    /// Returns the settings for a trace: the limit on the cost and, if there is a limit, the file with the prices.
    pub(crate) fn trace_settings(&self) -> (Option<String>, Option<&PathBuf>) {
        let table = self.model_table.as_ref().filter(|_| self.cost.is_some());
        (self.cost.map(|cost| cost.to_string()), table)
    }

    /// Returns the budget of a run.
    ///
    /// # Errors
    /// If the cost is not a positive number.
    pub(crate) fn budget(&self) -> Result<Budget, Error> {
        if self.cost.is_some_and(|cost| !cost.is_finite() || cost <= 0.0) {
            let message = "`--cost` must be a positive number of dollars";
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message));
        }
        Ok(Budget {
            cost_max: self.cost.map(Cost::usd),
            ..Budget::default()
        })
    }

    /// Adds the price and the context size from the model table to a model that does not have them. Whether the model takes
    /// pictures follows from `accepts_pictures`, or else from the table, or else from the model.
    ///
    /// # Errors
    /// If the table cannot be read or is invalid, or if the cost is limited and the model has no price.
    pub(crate) async fn describe_model(
        &self,
        model: Arc<dyn ChatModel>,
        accepts_pictures: Option<bool>,
        cancel: &CancellationToken,
    ) -> Result<Arc<dyn ChatModel>, Error> {
        let mut table = ModelTable::well_known();
        let default_path = || configuration_file("models.toml").ok().filter(|path| path.exists());
        if let Some(path) = self.model_table.clone().or_else(default_path) {
            let text = read_text(format!("@{}", path.display()), PROJECT_BYTES_MAX, cancel).await?;
            let extension = ModelTable::parse(&text).map_err(|error| model_table_error(&path, error))?;
            table = table.extended_with(extension);
        }
        let mut described_model = DescribedModel::new(model.clone());
        if model.context_tokens().is_none()
            && let Some(tokens) = table.context_tokens(model.name())
        {
            described_model = described_model.with_context_tokens(tokens);
        }
        if let Some(accepts_pictures) = accepts_pictures.or_else(|| table.accepts_pictures(model.name())) {
            described_model = described_model.with_pictures(accepts_pictures);
        }
        match table.price(model.name()) {
            _ if model.price().is_some() => {}
            Some(price) => described_model = described_model.with_price(price),
            None if self.cost.is_none() => {}
            None => {
                let message = format!(
                    "the model `{}` has no price, so its cost cannot be limited",
                    model.name()
                );
                let hint = format!(
                    "add a section `[{}]` with `input` and `output`, in dollars per million tokens, to a file and pass `--model-table FILE`",
                    model.name()
                );
                return Err(Error::new(ErrorKind::Configuration, Phase::Model, message).with_suggestion(hint));
            }
        }
        Ok(Arc::new(described_model))
    }
}

/// Adds the path of a model table to its error, and a hint with the form of a section.
fn model_table_error(path: &Path, error: Error) -> Error {
    let message = format!("{}: {}", path.display(), error.message);
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion(
            "write a section for each model, such as `[gpt-5]`, with `input` and `output` in dollars per million tokens, or `context`",
        )
        .with_source(error)
}
