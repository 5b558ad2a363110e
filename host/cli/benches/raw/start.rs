//! The shortest way to the result of a first call: map the machine code, instantiate, call.
#![allow(unsafe_code)]

use std::path::Path;
use std::time::{Duration, Instant};

use wasmtime::component::{Component, Linker, Val};

use super::{engine, store};

/// Compiles a component to a file.
pub fn precompile(bytes: &[u8], code: &Path) {
    std::fs::write(code, engine().precompile_component(bytes).unwrap()).unwrap();
}

/// Calls `evaluate` once. Returns how long that took, engine and all.
pub fn first_call(component: &Path, code: &Path, id: &str) -> Duration {
    let started = Instant::now();
    // As Toolwit does, it looks at the component whose code it takes.
    assert!(component.exists());
    let engine = engine();
    // SAFETY: `precompile` wrote the file a moment ago, in a directory of this user's own.
    let component = unsafe { Component::deserialize_file(&engine, code) }.unwrap();
    let mut linker = Linker::new(&engine);
    wasmtime_wasi::p2::add_to_linker_sync(&mut linker).unwrap();
    let mut store = store(&engine);
    let instance = linker.instantiate(&mut store, &component).unwrap();
    let (interface, function) = id.split_once('#').unwrap();
    let interface = component.get_export_index(None, interface).unwrap();
    let function = component.get_export_index(Some(&interface), function).unwrap();
    let function = instance.get_func(&mut store, function).unwrap();
    let mut results = [Val::Bool(false)];
    let params = [Val::String("2 * (3 + 4)".to_owned()), Val::Option(None)];
    let params = &params[..function.ty(&store).params().len()];
    function.call(&mut store, params, &mut results).unwrap();
    let took = started.elapsed();
    assert!(format!("{results:?}").contains("14"), "the answer is 14");
    took
}
