//! The choice between compiling in this process and in a separate process with limits.

use std::path::PathBuf;

/// The process in which components are compiled.
///
/// Compiling a malicious component can take a thousand times the size of the component in memory. Inspection refuses most
/// malicious components, but only a separate process has a hard limit of memory and time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Compiler {
    /// In this process. Compiling a component that passed inspection may still take seconds and gigabytes.
    #[default]
    InProcess,
    /// In a separate process for each component, with limits of memory and processor time. The path is that of the program to
    /// start. Its `main` must first call [`run_compiler_if_asked`](crate::run_compiler_if_asked). The program may be the host
    /// itself, [`current_exe`](std::env::current_exe).
    ///
    /// The Tokio runtime of the host needs its I/O driver.
    Process(PathBuf),
}
