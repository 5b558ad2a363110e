//! `wasi:config`: the granted settings.

use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Linker, Lower};

use super::host_state::HostState;
use crate::inspect::interfaces::CONFIG_STORES;

/// The type `error` of the interface. Reading a setting does not fail: a setting without a grant is reported as absent.
#[derive(ComponentType, Lower)]
#[component(variant)]
#[expect(dead_code, reason = "the interface declares it, and no function here returns it")]
enum ConfigError {
    #[component(name = "upstream")]
    Upstream(String),
    #[component(name = "io")]
    Io(String),
}

type Context<'a> = StoreContextMut<'a, HostState>;
type Outcome<T> = wasmtime::Result<(Result<T, ConfigError>,)>;

/// Links the interface.
pub(crate) fn add_to_linker(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    for name in CONFIG_STORES {
        let mut store = linker.instance(name)?;
        store.func_wrap("get", |mut context: Context<'_>, (key,): (String,)| {
            let outcome: Outcome<Option<String>> = Ok((Ok(context.data_mut().authority()?.setting(&key)),));
            outcome
        })?;
        store.func_wrap("get-all", |mut context: Context<'_>, (): ()| {
            let settings = context.data_mut().authority()?.rights.effective.settings();
            let entries = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let outcome: Outcome<Vec<(String, String)>> = Ok((Ok(entries.collect()),));
            outcome
        })?;
    }
    Ok(())
}
