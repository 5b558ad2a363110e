//! The linker with WASI 0.2 and the other host interfaces. All of them are linked for every guest, and give access only to
//! granted resources.

use wasmtime::component::Linker;
use wasmtime_wasi_http::WasiHttpCtx;

use super::config;
use super::environment;
use super::files;
use super::host_api;
use super::host_state::HostState;
use super::keyvalue;
use super::logging;
use super::near;
use super::sockets;
use crate::grants::{ClockRule, EffectiveRights};
use toolwit_core::limits::HEADER_BYTES_MAX;

/// Creates the linker of an engine, without WASI 0.3. All instances of the engine share the linker.
pub(crate) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<HostState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    // The following interfaces replace interfaces of wasmtime, or are added. They enforce grants and quotas.
    linker.allow_shadowing(true);
    files::add_to_linker(&mut linker)?;
    environment::add_to_linker(&mut linker)?;
    config::add_to_linker(&mut linker)?;
    keyvalue::add_to_linker(&mut linker)?;
    logging::add_to_linker(&mut linker)?;
    host_api::add_to_linker(&mut linker)?;
    near::add_to_linker(&mut linker)?;
    sockets::add_to_linker(&mut linker)?;
    linker.allow_shadowing(false);
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    Ok(linker)
}

/// Returns the second since 1970 at which the clocks of a guest are frozen, which is zero without a grant. Returns `None` if
/// the guest may read the real time.
pub(super) fn frozen_second(rights: &EffectiveRights) -> Option<u64> {
    match rights.clock() {
        Some(ClockRule::Real) => None,
        Some(ClockRule::Frozen(second)) => Some(second),
        None => Some(0),
    }
}

/// Creates wasmtime's HTTP context, which only limits the size of headers. Grants are enforced by the
/// [`HttpGate`](super::http::HttpGate) of the instance.
pub(crate) fn http_context() -> WasiHttpCtx {
    let mut http = WasiHttpCtx::new();
    http.set_field_size_limit(HEADER_BYTES_MAX);
    http
}
