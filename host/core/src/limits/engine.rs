//! Limits of the process.

use std::time::Duration;

/// Limits of the process, which no call, manifest or flag can exceed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineLimits {
    /// Maximum memory of all linear memories of one instance, in bytes. 1 GiB suffices for the runtime of any
    /// language.
    pub memory_bytes_max: u64,
    /// The size of the stack of WebAssembly code, in bytes. A guest that needs more than 1 MiB almost certainly has a recursion bug.
    pub stack_bytes_max: usize,
    /// Maximum number of live instances of all plugins. Each instance occupies a slot of wasmtime's pooling allocator.
    pub instances_max: u32,
    /// Maximum size of a component file, in bytes. A larger file, which may be sparse, is rejected before it is read.
    pub component_bytes_max: u64,
    /// Maximum time that a caller waits for one component to be validated and compiled.
    pub load_wall_max: Duration,
    /// Maximum time of the compilation of one component in a compiler process. At the limit, the process is stopped.
    pub compile_wall_max: Duration,
    /// Maximum memory of a compiler process, in bytes. The limit for a small component is lower, and depends on the size of the
    /// component.
    pub compile_memory_bytes_max: u64,
    /// Maximum size of the machine code that a compiler process returns for one component, in bytes. The limit for a small
    /// component is lower, and depends on the size of the component.
    pub code_bytes_max: u64,
    /// The highest wall-clock limit of a call that an operator can set.
    pub call_wall_max: Duration,
    /// The highest depth of nested calls that an operator can set, the outermost call included. Each call holds an instance
    /// with its memory.
    pub nested_depth_max: u32,
    /// Maximum number of live calls of one plugin, including calls that wait, for example for an HTTP response. Further calls are
    /// queued. One caller may have half of them and one conversation a third, so that others find a place.
    pub calls_per_plugin_max: usize,
    /// Maximum number of guests that compute at the same time. A guest that waits is not counted. Callers and conversations take
    /// turns. The default is the number of processors, or 2 if that number is unknown.
    pub computing_calls_max: usize,
    /// Maximum memory of the linear memories of all instances that calls use, in bytes. One caller may have half of it.
    pub guest_memory_bytes_max: u64,
    /// Maximum number of files and connections that the guests of all calls have open, and at most half of the files that the
    /// process may open. One caller may have half of them. Each instance may have four more.
    pub guest_files_max: u64,
    /// Maximum number of live session instances of one conversation.
    pub sessions_per_conversation_max: usize,
    /// Maximum number of live session instances of the process; the least recently used is evicted first.
    pub sessions_max: usize,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            memory_bytes_max: 1 << 30,
            stack_bytes_max: 1 << 20,
            instances_max: 1_000,
            component_bytes_max: 128 << 20,
            load_wall_max: Duration::from_secs(120),
            compile_wall_max: Duration::from_secs(600),
            compile_memory_bytes_max: 2 << 30,
            code_bytes_max: 512 << 20,
            call_wall_max: Duration::from_secs(3_600),
            nested_depth_max: 16,
            calls_per_plugin_max: 64,
            computing_calls_max: std::thread::available_parallelism().map_or(2, usize::from),
            guest_memory_bytes_max: 4 << 30,
            guest_files_max: 4_096,
            sessions_per_conversation_max: 8,
            sessions_max: 256,
        }
    }
}
