//! What a tool is: its contract, names, results, errors and context. No WebAssembly and no I/O.
//!
//! A [`Tool`] has a [`ToolDefinition`] and answers calls with a [`ToolResult`]; a [`ToolSet`] holds those of one
//! conversation, each under a [`ToolName`]. [`NativeTool`] makes one of Rust code, [`ToolProvider`] many of one object.

mod approval;
mod arguments;
mod artifact_sink;
mod asset;
mod available;
mod background;
mod blackboard;
mod caller;
mod context;
mod contract;
mod decorator;
mod definition;
mod entity_methods;
mod error;
mod id;
mod input;
mod loop_memo;
mod message;
mod meta;
mod name;
mod native;
mod native_entity;
mod object;
mod output;
mod parameter;
mod provider;
mod result;
mod set;
mod signal;
mod unfold;

pub use approval::{Approval, ApprovalRequest, Approver};
pub use arguments::{ARGUMENT_BYTES_MAX, ParsedArguments, parse_arguments};
pub use artifact_sink::{ArtifactCapture, ArtifactSink, BlackboardSink, CompositeSink, ListSink};
pub use asset::{Asset, AssetTracker};
pub use available::{AVAILABLE_TOOLS, name_available_tools};
pub use background::{BACKGROUND_TASKS_MAX, BackgroundTask};
pub use blackboard::{Blackboard, BlackboardEntry, BlackboardLimits, BlackboardSharing, MemoryBlackboard};
pub use caller::ToolCaller;
pub use context::{CHANNEL, CHAT_ID, LOOP_ID, ToolContext};
pub use contract::{Arguments, Tool, decorator_chain};
pub use decorator::{DecoratedTool, Decorator, ToolExt};
pub use definition::ToolDefinition;
pub use entity_methods::EntityMethods;
pub use error::ToolError;
pub use id::ToolId;
pub use loop_memo::LoopMemory;
pub use message::{Message, Role, ToolCall};
pub use meta::MetaFilter;
pub use name::{NAME_BYTES_MAX, ToolName};
pub use native::{NativeTool, NoArguments};
pub use native_entity::NativeEntity;
pub use object::{ToolMethod, ToolMethods, ToolObject};
pub use output::{NoOutput, OutputSink};
pub use parameter::Parameter;
pub use provider::{Rebinding, ToolProvider, entity_tool_names};
pub use result::{Artifact, Audience, CallUsage, Disposition, ToolResult, ToolStatus};
pub use set::{AddOutcome, NamedTool, ToolLookup, ToolSet};
pub use signal::Signal;
pub use unfold::{RevealedTools, ToolFacade};

pub use background::{BackgroundTasks, LateResult};
pub use input::InputValidator;
pub use result::FollowUpCall;
