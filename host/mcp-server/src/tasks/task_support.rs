//! The setting that decides which calls become tasks.

/// Whether the calls of a tool become tasks, for clients that declare the tasks extension of MCP. If a principal has too
/// many tasks, its further calls are answered directly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// A call is always answered directly.
    Never,
    /// A call that runs for longer than half a second becomes a task.
    #[default]
    WhenLong,
    /// Every call becomes a task. Calls of a client without the extension are answered directly.
    Always,
    /// Every call becomes a task. Calls of a client without the extension are refused.
    Required,
}
