//! Contracts of other hosts: the interfaces through which components that were built for these hosts list and run their
//! tools.
//!
//! - `act`: `act:tools/tool-provider` of [ACT](https://actcore.dev). A component lists its tools, takes arguments as
//!   CBOR, and returns content with media types.
//! - `near`: `near:agent/tool` of [IronClaw](https://github.com/nearai/ironclaw). A component is one tool, which takes
//!   and returns JSON.
//! - `cbor`: converts CBOR to JSON, and JSON to CBOR.
//!
//! The types of a contract are fixed. They are therefore Rust types here, and are not read from the component.
//! Inspection detects which contract a component exports.

pub(crate) mod act;
pub(crate) mod cbor;
pub(crate) mod near;

use wasmtime::Store;
use wasmtime::component::Func;

use crate::link::host::host_state::HostState;
use toolwit_core::text::printable;

/// The maximum length of a guest's error message, in characters. A model can read a long result in parts, but not an error.
const REASON_CHARS_MAX: usize = 2_000;

/// A function of a contract, with its arguments.
pub(crate) trait ContractFunction: Send {
    /// The type of the function's result.
    type Output: Send;

    /// Returns the index of the function in the shape of the component.
    fn index(&self) -> usize;

    /// Calls the function, and reads the streams in the result. A result with more than `stream_bytes_max` bytes is an
    /// error if the function can return streams.
    fn run(
        self,
        store: &mut Store<HostState>,
        func: Func,
        stream_bytes_max: u64,
    ) -> impl Future<Output = wasmtime::Result<Self::Output>> + Send;
}

/// Returns the reason of a guest's error as printable text of at most [`REASON_CHARS_MAX`] characters. Replaces a blank
/// reason by a default text.
fn printable_reason(text: &str) -> String {
    let text: String = printable(text).chars().take(REASON_CHARS_MAX).collect();
    if text.trim().is_empty() {
        "the tool gave no reason".to_owned()
    } else {
        text
    }
}
