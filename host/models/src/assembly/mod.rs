//! The assembly of a response from its pieces, which is the same for every provider.
//!
//! The reader of an API adds texts, pieces of calls, blocks and token counts to a [`ResponseAssembly`]. The assembly
//! passes texts and calls to the listener of the request, limits the size of the response and completes the calls.

mod call_assembly;
mod json_end;
mod response_assembly;

pub(super) use call_assembly::CallPiece;
pub(super) use response_assembly::{ResponseAssembly, counted_bytes};
