//! The ids of the tools that a source can have.

use toolwit_agent::ToolSource;
use toolwit_core::ToolId;

/// Returns whether a source can have a tool that an earlier process used. A method of an entity comes from a call, and a tool
/// of the host from the host.
pub(super) fn may_have(source: &dyn ToolSource, tool: &ToolId) -> bool {
    !tool.is_host() && tool.unbound() == *tool && source.may_have(tool)
}
