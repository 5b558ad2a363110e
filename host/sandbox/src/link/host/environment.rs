//! `wasi:cli/environment`: the granted variables.

use wasmtime::component::HasData;
use wasmtime_wasi::cli::WasiCliCtxView;
use wasmtime_wasi::p2::bindings::cli::environment;

use super::host_state::HostState;
use crate::grants::authority::Authority;

/// The environment of one instance.
pub(crate) struct EnvironmentView<'a> {
    pub(super) wasi: WasiCliCtxView<'a>,
    pub(super) authority: Option<Authority>,
}

/// Selects the store data of the host functions, for the linker.
pub(super) struct GrantedEnvironment;

impl HasData for GrantedEnvironment {
    type Data<'a> = EnvironmentView<'a>;
}

/// Links the interface in place of wasmtime's, to record that a guest without variables has looked for some.
pub(crate) fn add_to_linker(linker: &mut wasmtime::component::Linker<HostState>) -> wasmtime::Result<()> {
    environment::add_to_linker::<HostState, GrantedEnvironment>(linker, HostState::environment)
}

impl environment::Host for EnvironmentView<'_> {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        self.record_read();
        environment::Host::get_environment(&mut self.wasi)
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        environment::Host::get_arguments(&mut self.wasi)
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        environment::Host::initial_cwd(&mut self.wasi)
    }
}

impl EnvironmentView<'_> {
    /// Records for the operator that the guest has read its environment, if the guest has no variables: a grant may be missing.
    pub(super) fn record_read(&self) {
        if let Some(authority) = &self.authority {
            authority.record_environment_read();
        }
    }
}
