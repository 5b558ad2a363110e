//! `wasi:config/store`: the settings that are granted to the guest.

use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Linker, Lower};

use super::host_state::HostState;
use crate::inspect::interfaces::CONFIG_STORES;

/// The type `error` of the interface. The functions here never return it: a setting without a grant is reported as absent.
#[derive(ComponentType, Lower)]
#[component(variant)]
#[expect(
    dead_code,
    reason = "the interface declares the type, and no function here returns it"
)]
enum ConfigError {
    #[component(name = "upstream")]
    Upstream(String),
    #[component(name = "io")]
    Io(String),
}

type Context<'a> = StoreContextMut<'a, HostState>;

/// The return type of a host function of the interface.
type HostResult<T> = wasmtime::Result<(Result<T, ConfigError>,)>;

/// Links the interface in all versions of [`CONFIG_STORES`].
pub(crate) fn add_to_linker(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    for name in CONFIG_STORES {
        let mut store = linker.instance(name)?;
        store.func_wrap("get", |mut context: Context<'_>, (key,): (String,)| {
            let value: HostResult<Option<String>> = Ok((Ok(context.data_mut().authority()?.setting(&key)),));
            value
        })?;
        store.func_wrap("get-all", |mut context: Context<'_>, (): ()| {
            let settings = context.data_mut().authority()?.rights.effective.settings();
            let entries = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let values: HostResult<Vec<(String, String)>> = Ok((Ok(entries.collect()),));
            values
        })?;
    }
    Ok(())
}
