//! The functions of an exported `toolwit:plugin/interceptor`.

use serde::{Deserialize, Serialize};

/// The indexes of an interceptor's functions in [`Shape::functions`](super::types::Shape::functions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InterceptorExport {
    /// The function that decides about a call.
    pub(crate) before: usize,
    /// The function that reviews the outcome of a call.
    pub(crate) after: usize,
}
