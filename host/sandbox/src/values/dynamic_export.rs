//! The data of a component's dynamic tools: the exported functions that list and call them, and the discovered tools.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use toolwit_core::EffectClass;

/// The exported functions through which a component lists and calls its dynamic tools, and the tools that it listed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DynamicExport {
    /// The exported interface, which defines the functions.
    pub(crate) contract: ToolContract,
    /// The tools that the component listed; `None` until the component has been queried.
    #[serde(rename = "discovered", default, skip_serializing_if = "Option::is_none")]
    pub(crate) discovered_tools: Option<Vec<DiscoveredTool>>,
}

impl DynamicExport {
    /// Creates the export of a component whose tools have not been discovered.
    pub(crate) fn undiscovered(contract: ToolContract) -> Self {
        Self {
            contract,
            discovered_tools: None,
        }
    }
}

/// The interface through which a component lists and calls its tools, with the indexes of the functions in
/// [`Shape::functions`](super::types::Shape::functions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToolContract {
    /// `toolwit:plugin/dynamic`.
    Toolwit {
        /// The index of the function that lists the tools.
        tools: usize,
        /// The index of the function that calls a tool.
        call: usize,
    },
    /// An interface of another host.
    Foreign(ForeignContract),
}

/// An interface of another host through which a component lists and calls its tools, with the indexes of the functions in
/// [`Shape::functions`](super::types::Shape::functions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ForeignContract {
    /// `act:tools/tool-provider` of the host ACT.
    Act {
        /// The index of the function that lists the tools.
        list: usize,
        /// The index of the function that calls a tool.
        call: usize,
    },
    /// `near:agent/tool` of the host IronClaw. The component has one tool.
    Near {
        /// The index of the function that returns the schema of the arguments.
        schema: usize,
        /// The index of the function that returns the description of the tool.
        description: usize,
        /// The index of the function that calls the tool.
        execute: usize,
        /// The type of the response of `execute`.
        response: NearResponse,
    },
}

/// The type of a response of `near:agent/tool`, which depends on the version of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NearResponse {
    /// A record with an optional output and an optional error, in versions before 0.4.
    Fields,
    /// A variant with the cases `success` and `failure`, in version 0.4.
    Outcome,
}

impl ToolContract {
    /// Returns the index of the function that calls a tool.
    pub(crate) fn call_index(self) -> usize {
        match self {
            Self::Toolwit { call, .. } | Self::Foreign(ForeignContract::Act { call, .. }) => call,
            Self::Foreign(ForeignContract::Near { execute, .. }) => execute,
        }
    }

    /// Returns the indexes of all functions of the contract.
    pub(crate) fn function_indexes(self) -> Vec<usize> {
        match self {
            Self::Toolwit { tools: list, call } | Self::Foreign(ForeignContract::Act { list, call }) => {
                vec![list, call]
            }
            Self::Foreign(ForeignContract::Near {
                schema,
                description,
                execute,
                ..
            }) => vec![schema, description, execute],
        }
    }

    /// Returns the contract of another host, or `None` for `toolwit:plugin/dynamic`.
    pub(crate) fn foreign(self) -> Option<ForeignContract> {
        match self {
            Self::Toolwit { .. } => None,
            Self::Foreign(contract) => Some(contract),
        }
    }
}

/// A tool as a component listed it. It has not been validated.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListedTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: String,
    pub(crate) output_schema: Option<String>,
    /// The effect class that the component's author declares.
    #[serde(default)]
    pub(crate) effect: Option<EffectClass>,
}

/// A tool that a component listed at run time. Its name, description and schemas have been validated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DiscoveredTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output_schema: Option<Value>,
    /// The effect class that the component's author declares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) effect: Option<EffectClass>,
}
