//! The reason why a command ends early.

use std::io;

use toolwit::Error;

/// The reason why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The operation failed.
    Error(Error),
    /// Standard output cannot be written: it is closed, or the disk is full.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}
