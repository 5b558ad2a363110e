//! A response that is assembled from its pieces, the same way for every provider.
//!
//! A client reads the wire format of its provider and adds texts, pieces of calls, blocks and counts to a
//! [`ResponseAssembly`], which passes them to the observers of the request, limits them and completes the calls.

mod call_assembly;
mod json_end;
mod response_assembly;

pub(super) use call_assembly::CallPiece;
pub(super) use response_assembly::{ResponseAssembly, json_bytes};
