//! What a tool for AI agents is, without WebAssembly, without a model and without I/O.
//!
//! A [`Tool`] has a [`ToolDefinition`] and answers a call with a [`ToolResult`] or a [`ToolError`]. A [`ToolSet`] holds the
//! tools of one conversation, each under a [`ToolName`]. [`NativeTool`] turns Rust code into a tool, and [`limits`] holds every
//! limit with its default.

// The attribute `#[tool]` writes `::toolwit`, also in this crate's own tests.
#[cfg(test)]
extern crate self as toolwit;

mod error;
pub mod limits;
mod tool;

pub use error::{Error, ErrorKind, ErrorReport, LimitUse, Phase};
pub use tool::{
    ARGUMENT_BYTES_MAX, AVAILABLE_TOOLS, Added, Approval, ApprovalRequest, Approver, Arguments, Artifact, ArtifactSink,
    Asset, AssetTracker, BACKGROUND_CALLS_MAX, Background, Blackboard, BlackboardEntry, BlackboardLimits,
    BlackboardSink, CHANNEL, CHAT_ID, CallUsage, Capture, Completion, CompositeSink, Decorated, Decorator,
    EntityMethods, FollowUp, InputCheck, LOOP_ID, Late, ListSink, Lookup, LoopMemo, MemoryBlackboard, Message,
    MetaFilter, NAME_BYTES_MAX, NamedTool, NativeEntity, NativeTool, NoArguments, NoOutput, OutputSink, Parameter,
    ParsedArguments, Rebinding, Role, Sharing, Signal, Tool, ToolCall, ToolCaller, ToolContext, ToolDefinition,
    ToolError, ToolExt, ToolId, ToolMethod, ToolMethods, ToolName, ToolObject, ToolProvider, ToolResult, ToolSet,
    Unfolded, Unfolds, entity_tool_names, id_in_name, json_type, layers, name_available_tools, parse_arguments,
    parse_json, schema_of, short_hash, snake_case,
};

/// What the attribute `#[tool]` writes into its users' code.
#[doc(hidden)]
pub mod __private {
    pub use crate::tool::{ToolMethod, ToolMethods};
    pub use {schemars, serde};
}

#[cfg(test)]
pub use toolwit_macros::tool;
