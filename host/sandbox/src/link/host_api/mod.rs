//! `toolwit:plugin`: what a guest may ask of the host beyond WASI. The interface is described in `wit/plugin.wit`.

mod nesting;
mod reach;
mod values;

pub(crate) use nesting::{CallStack, FuelMeter};
pub(crate) use reach::Reach;
pub(crate) use values::read_tool_result;

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Val};

use crate::call::state::HostState;
use crate::inspect::interfaces::{PLUGIN_PACKAGE, PLUGIN_VERSION};

type Store<'a> = StoreContextMut<'a, HostState>;

/// Links the interfaces. Each function finds what it needs in the state of its store.
pub(crate) fn add_to_linker(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    let name = |interface: &str| format!("{PLUGIN_PACKAGE}{interface}@{PLUGIN_VERSION}");

    let mut context = linker.instance(&name("context"))?;
    context.func_wrap("get", |mut store: Store<'_>, (key,): (String,)| {
        Ok((store.data_mut().reach()?.context_value(&key),))
    })?;

    let mut output = linker.instance(&name("output"))?;
    output.func_wrap("progress", |mut store: Store<'_>, (text,): (String,)| {
        store.data_mut().reach()?.progress(&text);
        Ok(())
    })?;
    output.func_wrap("communicate", |mut store: Store<'_>, (text,): (String,)| {
        store.data_mut().reach()?.communicate(&text);
        Ok(())
    })?;
    output.func_new("attach", |mut store: Store<'_>, _, arguments, results| {
        let artifact = values::read_artifact(values::first(arguments)?)?;
        let handed = store.data_mut().reach()?.hand_over(artifact);
        values::answer(results, values::unit_or_text(handed))
    })?;

    let mut blackboard = linker.instance(&name("blackboard"))?;
    blackboard.func_new("get", |mut store: Store<'_>, _, arguments, results| {
        let Some(Val::String(name)) = arguments.first() else {
            return Err(values::mismatch());
        };
        let found = store.data_mut().reach()?.blackboard_get(name);
        values::answer(
            results,
            Val::Option(found.as_ref().map(|found| Box::new(values::artifact(found)))),
        )
    })?;
    blackboard.func_new("put", |mut store: Store<'_>, _, arguments, results| {
        let [name, artifact] = arguments else {
            return Err(values::mismatch());
        };
        let name = values::read_optional_text(name)?;
        // Read when it is known that it may go there.
        let artifact = || values::read_artifact(artifact).unwrap_or_else(|error| Err(error.to_string()));
        let put = store.data_mut().reach()?.blackboard_put(name, artifact);
        values::answer(results, values::unit_or_text(put))
    })?;
    blackboard.func_new("list", |mut store: Store<'_>, _, _, results| {
        let entries = store.data_mut().reach()?.blackboard_list();
        values::answer(results, Val::List(entries.iter().map(values::entry).collect()))
    })?;

    let mut tools = linker.instance(&name("tools"))?;
    tools.func_new_async("call", |mut store: Store<'_>, _, arguments, results| {
        Box::new(async move {
            let [Val::String(tool), Val::String(arguments)] = arguments else {
                return Err(values::mismatch());
            };
            let called = nesting::call(&mut store, tool, arguments).await?;
            values::answer(results, values::called(&called))
        })
    })?;
    Ok(())
}
