//! The choice between compiling in this process and in a separate process with limits.

use std::path::PathBuf;

/// The process in which components are compiled.
///
/// The author of a component can make its compilation take a thousand times its size in memory. Inspection refuses most
/// such components, but only a separate process has a hard limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Compiler {
    /// In this process. A component that passes inspection may still take seconds and gigabytes.
    #[default]
    InProcess,
    /// In a separate process for each component, with limits of memory and processor time. The path is that of the program to
    /// start. Its `main` must first call [`run_compiler_if_asked`](crate::run_compiler_if_asked). The program may be the host
    /// itself, [`current_exe`](std::env::current_exe).
    ///
    /// The Tokio runtime of the host needs its I/O driver.
    Process(PathBuf),
}
