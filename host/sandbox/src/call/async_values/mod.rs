//! The streams and futures of a call. The host writes the streams and futures of the arguments, and reads those of the result
//! within the size limit of the result.

mod item;
mod receive;
mod send;

use wasmtime::component::{Func, Val};
use wasmtime::{AsContextMut as _, Store};

use crate::link::host::host_state::HostState;
use crate::values::types::Function;

/// Calls an export that has streams or futures in its arguments or its result. Replaces the streams and futures in the
/// result by the values that they deliver. These values may have at most `bytes_max` bytes in total.
///
/// # Errors
/// The errors of the guest, [`StreamsTooLarge`](crate::link::limits::streams_too_large::StreamsTooLarge), and an error for a
/// future that the guest drops without a value.
pub(super) async fn call_with_streams(
    store: &mut Store<HostState>,
    func: Func,
    function: &Function,
    mut params: Vec<Val>,
    results: &mut [Val],
    bytes_max: u64,
) -> wasmtime::Result<()> {
    let outcome = store
        .run_concurrent(async |accessor| {
            // The first parameter of a method is its resource handle, which `function.params` does not contain.
            let handle_count = params.len().saturating_sub(function.params.len());
            for (field, value) in function.params.iter().zip(&mut params[handle_count..]) {
                accessor.with(|mut store| send::insert_handles(&mut store.as_context_mut(), &field.ty, value))?;
            }
            func.call_concurrent(accessor, &params, results).await?;
            match (results.first_mut(), &function.result) {
                (Some(result), Some(ty)) => receive::replace_handles(accessor, ty, result, bytes_max).await,
                _ => Ok(()),
            }
        })
        .await;
    outcome?
}
