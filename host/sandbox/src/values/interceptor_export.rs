//! The functions of an exported `toolwit:plugin/interceptor`.

use serde::{Deserialize, Serialize};

/// The indexes of an interceptor's functions in [`Shape::functions`](super::types::Shape::functions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InterceptorExport {
    /// The index of the function that decides, before a call, whether and with which arguments it runs.
    pub(crate) before: usize,
    /// The index of the function that reviews the result or the error, after a call.
    pub(crate) after: usize,
}
