//! Why a command ended early.

use std::io;

use toolwit::Error;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What it was asked to do failed.
    Error(Error),
    /// Standard output takes nothing more: it is closed, or its disk is full.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}
