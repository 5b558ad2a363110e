//! Ceilings of the process.

use std::time::Duration;

/// What no call, no manifest and no flag can exceed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineLimits {
    /// The most memory of one instance, in bytes, over all its linear memories. A gibibyte holds any language's runtime.
    pub memory_bytes_max: u64,
    /// The stack of WebAssembly code, in bytes. Deeper recursion than a mebibyte is a bug in nearly every guest.
    pub stack_bytes_max: usize,
    /// Instances that are alive at once, of all plugins. Each takes a slot of the pool.
    pub instances_max: u32,
    /// The largest component file, in bytes, so that a sparse file is refused before it is read.
    pub component_bytes_max: u64,
    /// How long checking and compiling one component may keep a caller waiting.
    pub load_wall_max: Duration,
    /// The longest call. An operator may ask for more than the default, and never for more than this.
    pub call_wall_max: Duration,
    /// Calls that are inside each other, the outermost included. Each holds an instance with its memory.
    pub nested_depth_max: u32,
    /// Calls of one plugin that run at once; more wait in line. The default is the number of processors.
    pub calls_per_plugin_max: usize,
    /// Live session instances of one conversation.
    pub sessions_per_conversation_max: usize,
    /// Live session instances of the process; the one used longest ago goes first.
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
            call_wall_max: Duration::from_secs(3_600),
            nested_depth_max: 16,
            calls_per_plugin_max: std::thread::available_parallelism().map_or(2, usize::from),
            sessions_per_conversation_max: 8,
            sessions_max: 256,
        }
    }
}
