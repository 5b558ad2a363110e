//! `wasi:cli/environment`: the environment variables that are granted to the guest.

use wasmtime::component::HasData;
use wasmtime_wasi::cli::WasiCliCtxView;
use wasmtime_wasi::p2::bindings::cli::environment;

use super::host_state::HostState;
use crate::grants::authority::Authority;

/// The environment of one instance, as the host functions need it.
pub(crate) struct EnvironmentView<'a> {
    pub(super) wasi: WasiCliCtxView<'a>,
    pub(super) authority: Option<Authority>,
}

/// The type by which the linker selects the data of the host functions: an [`EnvironmentView`].
pub(super) struct GrantedEnvironment;

impl HasData for GrantedEnvironment {
    type Data<'a> = EnvironmentView<'a>;
}

/// Links the interface in place of wasmtime's, which does not record that a guest without variables reads its environment.
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
    /// Records for the operator that the guest has read its environment. Does nothing if the guest has variables: then no grant
    /// seems to be missing.
    pub(super) fn record_read(&self) {
        if let Some(authority) = &self.authority {
            authority.record_environment_read();
        }
    }
}
