//! Stored metadata of packages and tools.

use serde::{Deserialize, Serialize};

/// Stored metadata of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageRecord {
    /// The absolute path of the package's component. It identifies the package.
    pub path: String,
    /// Modification times, sizes and inodes of the package's files when they were read, and the version of the inspection
    /// format. If the stamp is empty or differs from the stamp of the files, the files must be read again.
    pub stamp: String,
    /// Its name.
    pub name: String,
    /// SHA-256 of its component, in hex.
    pub digest: String,
    /// Its version, from the manifest.
    pub version: Option<String>,
    /// Its category, from the manifest.
    pub category: Option<String>,
    /// The completeness of its manifest: `minimal` or `rich`.
    pub tier: String,
    /// The inspection of its component, from
    /// [`Inspection::to_cache_text`](toolwit_sandbox::Inspection::to_cache_text).
    pub inspection: String,
    /// The hash of `name`, `inspection` and `manifest` when the record was created. If they now have another hash, the
    /// record is damaged.
    pub content_hash: String,
    /// Its manifest, as JSON.
    pub manifest: Option<String>,
    /// The reason why the package is broken, or why its dynamic tools are missing.
    pub reason: Option<String>,
    /// Its tools.
    pub tools: Vec<ToolRecord>,
    /// The methods of the entities that its tools can return.
    pub methods: Vec<MethodRecord>,
}

/// Stored metadata of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRecord {
    /// The tool's id.
    pub id: String,
    /// Its preferred name for models.
    pub name: String,
    /// The export that the tool calls: the id without the plugin's name.
    pub export: String,
    /// Its description.
    pub description: String,
    /// The quality of its description and of its manifest, in percent.
    pub quality_percent: u8,
    /// Its search terms, in the format of [`Terms::text`](crate::Terms::text).
    pub terms: String,
}

/// Stored metadata of an entity method. A search that matches the method returns one of its entry tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodRecord {
    /// The method's id, which all instances share.
    pub id: String,
    /// Its name in the form that all instances share.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its search terms, in the format of [`Terms::text`](crate::Terms::text).
    pub terms: String,
    /// The ids of its entry tools: the tools that return the entity.
    pub entry_tools: Vec<String>,
}

/// The key of a tool's health. The digest is part of the key, because another component may have a tool with the same id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolKey {
    /// SHA-256 of the component, in hex.
    pub digest: String,
    /// The tool's id.
    pub tool: String,
}

impl ToolKey {
    /// Creates the key of a component's tool.
    #[must_use]
    pub fn new(digest: impl Into<String>, tool: impl Into<String>) -> Self {
        Self {
            digest: digest.into(),
            tool: tool.into(),
        }
    }
}

/// The result of the last check of a component or tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HealthState {
    /// It was not checked, or the last check was too long ago.
    #[default]
    Unknown,
    /// It succeeded.
    Healthy,
    /// It failed.
    Broken,
}

/// The health of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolHealth {
    /// Whether its component can be loaded and linked. In JSON: `import`.
    #[serde(rename = "import")]
    pub loading: HealthState,
    /// Whether its calls succeed.
    pub execution: HealthState,
    /// The message of the last failure, while `loading` or `execution` is broken.
    pub error: Option<String>,
    /// The time of the last check, in milliseconds since 1970.
    pub checked_ms: u64,
    /// The number of calls that returned a result, errors of the tool included.
    pub uses: u64,
}

/// The stage of a call that a check examines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckStage {
    /// Loading and linking the component.
    Loading,
    /// Running the tool.
    Execution,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It succeeded.
    Success,
    /// It failed, with this message.
    Failure(String),
}

/// The uses and the last check of one or several calls, for [`ToolHealth::record`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallRecord {
    /// The number of calls that returned a result, errors of the tool included.
    pub uses: u64,
    /// The check of the last call whose outcome shows something about the health of the tool.
    pub check: Option<(CheckStage, CheckOutcome)>,
    /// The time of the record, in milliseconds since 1970.
    pub at_ms: u64,
}

impl CallRecord {
    /// Creates the record of a check at a time in milliseconds since 1970, without a use.
    #[must_use]
    pub fn check(stage: CheckStage, outcome: CheckOutcome, at_ms: u64) -> Self {
        Self {
            uses: 0,
            check: Some((stage, outcome)),
            at_ms,
        }
    }
}

impl ToolHealth {
    /// Records calls. A success of a stage clears an earlier failure of this stage. A success of the execution also clears a
    /// failure of the loading, because the component must have been loaded. Calls without a check only add uses.
    pub fn record(&mut self, calls: &CallRecord) {
        self.uses = self.uses.saturating_add(calls.uses);
        let Some((stage, outcome)) = &calls.check else { return };
        self.checked_ms = calls.at_ms;
        match (stage, outcome) {
            (CheckStage::Loading, CheckOutcome::Success) => self.loading = HealthState::Healthy,
            (CheckStage::Execution, CheckOutcome::Success) => {
                (self.loading, self.execution) = (HealthState::Healthy, HealthState::Healthy);
            }
            (CheckStage::Loading, CheckOutcome::Failure(_)) => self.loading = HealthState::Broken,
            (CheckStage::Execution, CheckOutcome::Failure(_)) => self.execution = HealthState::Broken,
        }
        match outcome {
            CheckOutcome::Failure(message) => self.error = Some(message.clone()),
            CheckOutcome::Success if !self.is_broken() => self.error = None,
            CheckOutcome::Success => {}
        }
    }

    /// Returns whether loading or execution failed when it was last checked.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        [self.loading, self.execution].contains(&HealthState::Broken)
    }
}
