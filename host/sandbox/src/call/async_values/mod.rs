//! The streams and futures of a call: the host writes those of the arguments, and reads those of the result within the
//! limit of the result.

mod item;
mod receive;
mod send;

use wasmtime::component::{Func, Val};
use wasmtime::{AsContextMut as _, Store};

use crate::link::host::host_state::HostState;
use crate::values::types::Function;

/// Calls an export that has streams or futures in its arguments or its result. Replaces the streams and futures in the
/// result by the values that they deliver, which may have `bytes_max` bytes in total.
///
/// # Errors
/// Those of the guest, [`StreamsTooLarge`](crate::link::limits::streams_too_large::StreamsTooLarge), and an error for a
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
            // The handle of a method comes first and is not among `function.params`.
            let first_param = params.len().saturating_sub(function.params.len());
            for (field, value) in function.params.iter().zip(&mut params[first_param..]) {
                accessor.with(|mut store| send::insert_handles(&mut store.as_context_mut(), &field.ty, value))?;
            }
            func.call_concurrent(accessor, &params, results).await?;
            match (results.first_mut(), &function.result) {
                (Some(result), Some(ty)) => receive::collect(accessor, ty, result, bytes_max).await,
                _ => Ok(()),
            }
        })
        .await;
    outcome?
}
