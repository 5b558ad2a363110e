//! Errors of several items, which the compiler reports together.

use syn::{Error, Result};

/// The errors that were found so far.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Returns the value, or records the error.
    pub(crate) fn ok_or_record<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                match &mut self.0 {
                    Some(first) => first.combine(error),
                    None => self.0 = Some(error),
                }
                None
            }
        }
    }

    /// Returns all errors as one, if there are any.
    pub(crate) fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
