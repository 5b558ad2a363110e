//! What is remembered of packages and tools.

use serde::{Deserialize, Serialize};

/// What is remembered of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageRecord {
    /// Where its component is, as an absolute path; it identifies the package.
    pub path: String,
    /// What the file system said of its files when they were read; other words mean that they changed.
    pub stamp: String,
    /// Its name.
    pub name: String,
    /// SHA-256 of its component; empty when it could not be read.
    pub digest: String,
    /// The version that its author gives it.
    pub version: Option<String>,
    /// The shelf that it stands on.
    pub category: Option<String>,
    /// How much it says about itself.
    pub tier: String,
    /// What is known of its component, as text for whoever wrote it; empty for a broken package.
    pub inspection: String,
    /// A hash of what is known of it: text that was damaged has another.
    pub content: String,
    /// Its manifest as JSON, when it has one.
    pub manifest: Option<String>,
    /// Why it is broken, as JSON.
    pub reason: Option<String>,
    /// Its tools.
    pub tools: Vec<ToolRecord>,
}

/// What is remembered of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRecord {
    /// The tool's id.
    pub id: String,
    /// The name that a model knows it by, where it is free.
    pub name: String,
    /// What it exports: the id without the plugin's name.
    pub export: String,
    /// Its description.
    pub description: String,
    /// How well it is described, in hundredths.
    pub quality_percent: u8,
    /// The words that it is found by, as the index takes them.
    pub terms: String,
}

/// A tool of certain bytes: what health is about. Another component may have tools of the same ids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolKey {
    /// SHA-256 of the component.
    pub digest: String,
    /// The tool's id.
    pub tool: String,
}

impl ToolKey {
    /// Names a tool of a component.
    #[must_use]
    pub fn new(digest: impl Into<String>, tool: impl Into<String>) -> Self {
        Self {
            digest: digest.into(),
            tool: tool.into(),
        }
    }
}

/// Whether something worked when it was last tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HealthState {
    /// It was never tried, or long ago.
    #[default]
    Unknown,
    /// It worked.
    Healthy,
    /// It failed.
    Broken,
}

/// How well a tool worked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolHealth {
    /// Loading its package.
    pub import: HealthState,
    /// Running it.
    pub execution: HealthState,
    /// What failed last, while something is broken.
    pub error: Option<String>,
    /// When it was last tried, in milliseconds since 1970.
    pub checked_ms: u64,
    /// How often it ran with success.
    pub uses: u64,
}

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckStage {
    /// Loading the package.
    Import,
    /// Running the tool.
    Execution,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It worked.
    Success,
    /// It failed, and why.
    Failure(String),
}

impl ToolHealth {
    /// Takes in what came of one more try. Whatever ran was loaded.
    pub fn record(&mut self, stage: CheckStage, outcome: &CheckOutcome, at_ms: u64) {
        self.checked_ms = at_ms;
        match (stage, outcome) {
            (CheckStage::Import, CheckOutcome::Success) => self.import = HealthState::Healthy,
            (CheckStage::Execution, CheckOutcome::Success) => {
                (self.import, self.execution) = (HealthState::Healthy, HealthState::Healthy);
                self.uses = self.uses.saturating_add(1);
            }
            (CheckStage::Import, CheckOutcome::Failure(_)) => self.import = HealthState::Broken,
            (CheckStage::Execution, CheckOutcome::Failure(_)) => self.execution = HealthState::Broken,
        }
        match outcome {
            CheckOutcome::Failure(why) => self.error = Some(why.clone()),
            CheckOutcome::Success if !self.is_broken() => self.error = None,
            CheckOutcome::Success => {}
        }
    }

    /// Whether loading or running failed when it was last tried.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        [self.import, self.execution].contains(&HealthState::Broken)
    }
}
