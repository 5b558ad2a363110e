//! The shortest way to the result of a first call: map the compiled code, instantiate, call.
#![allow(unsafe_code)]

use std::path::Path;
use std::time::{Duration, Instant};

use wasmtime::component::{Component, Linker, Val};

use super::{engine, store};

/// Compiles a component to a file.
pub fn precompile(bytes: &[u8], code: &Path) {
    std::fs::write(code, engine().precompile_component(bytes).unwrap()).unwrap();
}

/// Calls `evaluate` once. Returns the duration, including the creation of the engine.
pub fn first_call(component: &Path, code: &Path, id: &str) -> Duration {
    let started = Instant::now();
    // Accesses the component file, as Toolwit does before it loads cached code.
    assert!(component.exists());
    let engine = engine();
    // SAFETY: `precompile` has written the file, in a temporary directory that only this user can write to.
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
