//! `wasi:config`: the settings that a grant gives.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Val};

use crate::call::state::HostState;
use crate::inspect::interfaces::CONFIG_STORES;

/// Links the interface. Reading a setting never fails: one that is not granted is not there.
pub(crate) fn add_to_linker(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    for name in CONFIG_STORES {
        let mut store = linker.instance(name)?;
        store.func_new(
            "get",
            |mut state: StoreContextMut<'_, HostState>, _, arguments, results| {
                let settings = state.data_mut().settings();
                let found = match arguments {
                    [Val::String(key)] => settings.setting(key).map(str::to_owned),
                    _ => None,
                };
                answer(results, Val::Option(found.map(|value| Box::new(Val::String(value)))))
            },
        )?;
        store.func_new("get-all", |mut state: StoreContextMut<'_, HostState>, _, _, results| {
            let pair = |(key, value): (&str, &str)| {
                Val::Tuple(vec![Val::String(key.to_owned()), Val::String(value.to_owned())])
            };
            let all = state.data_mut().settings().settings().map(pair).collect();
            answer(results, Val::List(all))
        })?;
    }
    Ok(())
}

fn answer(results: &mut [Val], value: Val) -> wasmtime::Result<()> {
    if let Some(result) = results.first_mut() {
        *result = Val::Result(Ok(Some(Box::new(value))));
    }
    Ok(())
}
