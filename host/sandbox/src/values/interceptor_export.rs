//! The functions of an exported `toolwit:plugin/interceptor`.

use serde::{Deserialize, Serialize};

/// The indexes in [`Shape::functions`](super::types::Shape::functions) of the functions of an interceptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InterceptorExport {
    /// The function that decides about a call.
    pub(crate) before: usize,
    /// The function that reviews its outcome.
    pub(crate) after: usize,
}
