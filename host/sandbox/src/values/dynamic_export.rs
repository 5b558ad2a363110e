//! The data of a component's dynamic tools: the functions that list and call them, and the discovered tools.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The exported `toolwit:plugin/dynamic` of a component, with the tools that it listed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DynamicExport {
    /// The index in [`Shape::functions`](super::types::Shape::functions) of the function that lists the tools.
    pub(crate) tools: usize,
    /// The index of the function that calls a tool.
    pub(crate) call: usize,
    /// The discovered tools; `None` until the component has been queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) discovered: Option<Vec<DiscoveredTool>>,
}

impl DynamicExport {
    pub(crate) fn undiscovered(tools: usize, call: usize) -> Self {
        Self {
            tools,
            call,
            discovered: None,
        }
    }
}

/// A tool that a component listed at run time. Its names, texts and schemas have been validated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DiscoveredTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_schema: Option<Value>,
}
