//! From a component's bytes to a linked component: machine code from the cache or the compiler, then linking.

use std::path::Path;
use std::sync::Arc;

use wasmtime::component::Component;

use super::compiler::Compiler;
use super::compiler_process;
use super::engine::{Engine, Engines};
use super::host_setting::{check_host, host_setting_error, thread_error};
use super::linked_component::LinkedComponent;
use super::precompiled;
use super::status::CompileProgress;
use crate::inspect::inspection::Inspection;
use crate::inspect::source::ComponentSource;
use toolwit_core::{Error, ErrorKind, Phase};

/// Maps the cached machine code of a component, or compiles the component and caches the code. Then links the component.
/// Compiling can take minutes.
pub(crate) async fn load_or_compile(
    engines: Arc<Engines>,
    source: ComponentSource,
    inspection: Arc<Inspection>,
    progress: Arc<CompileProgress>,
) -> Result<Arc<LinkedComponent>, Error> {
    // Another process, which enabled other versions of WASI, may have cached the inspection.
    inspection.require_loadable(engines.wasi)?;
    let engine = engines.get(inspection.profile)?;
    let component = match load_cached(&engines, &engine, &inspection.digest).await? {
        Some(component) => {
            progress.record_start();
            component
        }
        None => {
            let permits = engines.compile_permits.acquire(inspection.size_bytes).await;
            progress.record_start();
            match &engines.compiler {
                Compiler::InProcess => {
                    inspection.compile_work.require_within_process()?;
                    let (engines, engine, inspection) = (engines.clone(), engine.clone(), inspection.clone());
                    let source = source.clone();
                    run_detached(move || {
                        // The thread holds the permits, because it continues to compile when the caller stops waiting.
                        let _permits = permits;
                        compile_in_process(&engines, &engine, &source, &inspection.digest)
                    })
                    .await?
                }
                Compiler::Process(program) => {
                    let code = compile_in_child(program, &engines, &engine, &source, &inspection).await?;
                    drop(permits);
                    cache_and_load(&engines, &engine, &inspection.digest, code).await?
                }
            }
        }
    };
    let linked = LinkedComponent::new(engine, &component, inspection.shape.clone())?;
    source.release();
    Ok(Arc::new(linked))
}

async fn load_cached(engines: &Arc<Engines>, engine: &Arc<Engine>, digest: &str) -> Result<Option<Component>, Error> {
    let (engines, engine, digest) = (engines.clone(), engine.clone(), digest.to_owned());
    let load = move || {
        let cache = engines.code_cache.as_ref();
        Ok(cache.and_then(|cache| cache.load(&engine, &digest)))
    };
    run_blocking(load).await
}

/// Compiles a component in this process, and caches the code.
fn compile_in_process(
    engines: &Engines,
    engine: &Engine,
    source: &ComponentSource,
    digest: &str,
) -> Result<Component, Error> {
    let bytes = source.read(digest, engines.limits.component_bytes_max)?;
    let component = engine.compile(&bytes)?;
    if let Some(cache) = &engines.code_cache {
        match component.serialize() {
            Ok(code) => cache.store(engine, digest, &code),
            Err(error) => tracing::debug!(%error, "machine code could not be cached"),
        }
    }
    Ok(component)
}

/// Compiles a component in a process of its own, and returns the machine code. Dropping the future ends the process.
async fn compile_in_child(
    program: &Path,
    engines: &Arc<Engines>,
    engine: &Engine,
    source: &ComponentSource,
    inspection: &Arc<Inspection>,
) -> Result<Vec<u8>, Error> {
    let (bytes_max, source, digest) = (
        engines.limits.component_bytes_max,
        source.clone(),
        inspection.digest.clone(),
    );
    let bytes = run_blocking(move || source.read(&digest, bytes_max)).await?;
    compiler_process::compile(program, engine, inspection.profile, &bytes, &engines.limits).await
}

/// Caches machine code and maps the cached file. Without a cache, or if the code cannot be stored, loads the code into memory.
async fn cache_and_load(
    engines: &Arc<Engines>,
    engine: &Arc<Engine>,
    digest: &str,
    code: Vec<u8>,
) -> Result<Component, Error> {
    let (engines, engine, digest) = (engines.clone(), engine.clone(), digest.to_owned());
    let load = move || {
        let cached = match &engines.code_cache {
            Some(cache) => cache.store_and_load(&engine, &digest, code),
            None => Err(Some(code)),
        };
        let load_error = |message| Error::new(ErrorKind::Internal, Phase::Load, message);
        match cached {
            Ok(component) => Ok(component),
            Err(Some(code)) => precompiled::load(&engine.wasmtime, &code).map_err(|error| {
                host_setting_error(&error).unwrap_or_else(|| {
                    load_error("the machine code from its compiler process could not be loaded")
                        .with_source(format!("{error:#}"))
                })
            }),
            // Another process may have removed the entry. Or a setting of the system does not allow machine code, which a check
            // of the host then finds.
            Err(None) => Err(check_host().pop().unwrap_or_else(|| {
                load_error("its machine code could not be loaded from the code cache").with_suggestion("call it again")
            })),
        }
    };
    run_blocking(load).await
}

/// Runs `work` on a thread of its own, so that compiling does not delay the end of the process. A Tokio runtime that shuts down
/// waits for its blocking tasks, and a compiler cannot be interrupted. Converts a panic to an error.
async fn run_detached<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    let compile_error = |source: Box<dyn std::error::Error + Send + Sync>| {
        Error::new(ErrorKind::Internal, Phase::Load, "compiling failed unexpectedly").with_source(source)
    };
    let (sender, receiver) = tokio::sync::oneshot::channel();
    // The receiver is gone if the caller stopped waiting.
    let run = move || drop(sender.send(work()));
    std::thread::Builder::new()
        .name("toolwit-compile".to_owned())
        .spawn(run)
        .map_err(|error| thread_error(&error))?;
    receiver.await.unwrap_or_else(|error| Err(compile_error(error.into())))
}

/// Runs `work`, which loads a component, on a Tokio thread for blocking tasks. Converts a panic to an error.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Error::new(
            ErrorKind::Internal,
            Phase::Load,
            "loading the component failed unexpectedly",
        )
        .with_source(error))
    })
}

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn running_compilation_does_not_delay_the_shutdown_of_a_tokio_runtime() {
        let (release_sender, release_receiver) = mpsc::channel::<()>();
        let (end_sender, end_receiver) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
        let (start_sender, start_receiver) = mpsc::channel();
        runtime.spawn(run_detached(move || {
            start_sender.send(()).unwrap();
            let _ = release_receiver.recv();
            end_sender.send(()).unwrap();
            Ok(())
        }));
        start_receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        // The drop would wait for a blocking task, which ends only after the release below.
        drop(runtime);
        release_sender.send(()).unwrap();
        end_receiver.recv_timeout(Duration::from_secs(10)).unwrap();
    }

    #[tokio::test]
    async fn panic_of_a_compiler_is_an_error() {
        let result: Result<(), _> = run_detached(|| std::panic::panic_any(1)).await;
        assert_eq!(result.unwrap_err().kind, ErrorKind::Internal);
    }
}
