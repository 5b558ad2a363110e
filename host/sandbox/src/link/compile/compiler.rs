//! The choice between compiling in this process and in one of its own, with limits.

use std::path::PathBuf;

/// Where components are compiled.
///
/// A component can be made to cost its compiler a thousand times its size in memory. Inspection refuses most of those; only a
/// process of its own has a hard limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Compiler {
    /// In this process. A component that passes inspection may still take seconds and gigabytes.
    #[default]
    InProcess,
    /// In a process of this program for each component, with limits of memory and processor time. The `main` of the program calls
    /// [`run_compiler_if_asked`](crate::run_compiler_if_asked) first. It may be the host itself: its
    /// [`current_exe`](std::env::current_exe).
    ///
    /// The Tokio runtime of the host needs its I/O driver.
    Process(PathBuf),
}
