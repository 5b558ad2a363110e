//! The stages in the discovery of a component's dynamic tools.

use serde::{Deserialize, Serialize};

/// The state of a component's dynamic tools: absent, not discovered yet, or discovered.
///
/// Dynamic tools are the tools that a component lists at run time, through `toolwit:plugin/dynamic` or an interface that another
/// host defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DynamicToolsState {
    /// The component does not export an interface that lists tools.
    None,
    /// The component exports an interface that lists tools, but has not been queried yet.
    Undiscovered,
    /// The component has been queried. [`Inspection::tools`](crate::Inspection::tools) includes the listed tools.
    Discovered,
}

impl DynamicToolsState {
    /// Returns whether the component has no dynamic tools.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::None
    }

    /// Returns whether the component has dynamic tools that have not been discovered yet.
    #[must_use]
    pub fn is_undiscovered(self) -> bool {
        self == Self::Undiscovered
    }
}
