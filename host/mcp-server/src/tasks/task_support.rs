//! The choice of the calls that become tasks.

/// Whether the calls of a tool become tasks, for clients that declare the extension. If a principal has too many tasks,
/// its further calls are answered directly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// A call is always answered directly.
    Never,
    /// A call that runs for longer than half a second becomes a task.
    #[default]
    WhenLong,
    /// Every call is a task. A client without the extension is answered directly.
    Always,
    /// Every call is a task. A client without the extension is refused.
    Required,
}
