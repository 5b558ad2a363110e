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
pub mod text;
mod tool;

pub use error::{Error, ErrorKind, ErrorReport, ExceededLimit, Phase};
pub use tool::{
    ARGUMENT_BYTES_MAX, AVAILABLE_TOOLS, AddOutcome, Approval, ApprovalRequest, Approver, Arguments, Artifact,
    ArtifactCapture, ArtifactSink, Asset, AssetTracker, Audience, BACKGROUND_TASKS_MAX, BackgroundTask,
    BackgroundTasks, Blackboard, BlackboardEntry, BlackboardLimits, BlackboardSharing, BlackboardSink, CHANNEL,
    CHAT_ID, CallUsage, CompositeSink, DecoratedTool, Decorator, Disposition, EntityMethods, FollowUpCall,
    InputValidator, LOOP_ID, LateResult, ListSink, LoopMemory, MemoryBlackboard, Message, MetaFilter, NAME_BYTES_MAX,
    NamedTool, NativeEntity, NativeTool, NoArguments, NoOutput, OutputSink, Parameter, ParsedArguments, Rebinding,
    RevealedTools, Role, Signal, Tool, ToolCall, ToolCaller, ToolContext, ToolDefinition, ToolError, ToolExt,
    ToolFacade, ToolId, ToolLookup, ToolMethod, ToolMethods, ToolName, ToolObject, ToolProvider, ToolResult, ToolSet,
    ToolStatus, decorator_chain, entity_tool_names, name_available_tools, parse_arguments,
};

/// What the attribute `#[tool]` writes into its users' code.
#[doc(hidden)]
pub mod __private {
    pub use crate::tool::{ToolMethod, ToolMethods};
    pub use {schemars, serde};
}

#[cfg(test)]
pub use toolwit_macros::tool;
