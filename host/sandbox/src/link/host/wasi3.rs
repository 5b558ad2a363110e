//! WASI 0.3 for guests, if the operator has enabled it: the same grants, limits and refusals as WASI 0.2.
//!
//! wasmtime publishes no security patches for bugs that only its implementation of WASI 0.3 has. So an interface is linked only
//! if it has each restriction of its predecessor in WASI 0.2: arguments, environment, clocks and randomness come from the same
//! context, output is written to the same log, HTTP requests pass the same gate, and every socket and name lookup is denied.

use wasmtime::component::Linker;
use wasmtime_wasi::p3;
use wasmtime_wasi::p3::bindings::cli::environment;

use super::environment::{EnvironmentView, GrantedEnvironment};
use super::files;
use super::host_state::HostState;
use super::sockets;
use super::wasi;

/// Creates the linker of an engine with WASI 0.2, WASI 0.3 and the other host interfaces.
pub(crate) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<HostState>> {
    let mut linker = wasi::linker(engine)?;
    p3::cli::add_to_linker(&mut linker)?;
    p3::clocks::add_to_linker(&mut linker)?;
    p3::random::add_to_linker(&mut linker)?;
    p3::sockets::add_to_linker(&mut linker)?;
    files::wasi3::add_to_linker(&mut linker)?;
    linker.allow_shadowing(true);
    environment::add_to_linker::<HostState, GrantedEnvironment>(&mut linker, HostState::environment)?;
    sockets::add_wasi3_to_linker(&mut linker)?;
    linker.allow_shadowing(false);
    wasmtime_wasi_http::p3::add_to_linker(&mut linker)?;
    Ok(linker)
}

impl environment::Host for EnvironmentView<'_> {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        self.record_read();
        environment::Host::get_environment(&mut self.wasi)
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        environment::Host::get_arguments(&mut self.wasi)
    }

    fn get_initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        environment::Host::get_initial_cwd(&mut self.wasi)
    }
}
