//! From a component's bytes to a linked component: machine code from the cache or the compiler, then linking.

use std::sync::Arc;

use wasmtime::component::Component;

use super::engine::{Engine, Engines};
use super::linked_component::LinkedComponent;
use super::status::Progress;
use crate::inspect::inspection::Inspection;
use crate::inspect::source::Source;
use toolwit_core::{Error, ErrorKind, Phase};

/// Maps cached machine code, or compiles the component and caches the code; then links it. Compiling can take minutes.
pub(crate) async fn link(
    engines: Arc<Engines>,
    source: Source,
    inspection: Arc<Inspection>,
    progress: Arc<Progress>,
) -> Result<Arc<LinkedComponent>, Error> {
    let engine = engines.get(inspection.profile)?;
    let component = match load_cached(&engines, &engine, &inspection.digest).await? {
        Some(component) => {
            progress.started();
            component
        }
        None => {
            let workers = engines.compiling.acquire(inspection.size_bytes).await;
            progress.started();
            let (engine, digest) = (engine.clone(), inspection.digest.clone());
            blocking(move || {
                // Moved into the task, which continues when its caller stops waiting.
                let _workers = workers;
                compile(&engines, &engine, &source, &digest)
            })
            .await?
        }
    };
    LinkedComponent::new(engine, &component, inspection.shape.clone()).map(Arc::new)
}

async fn load_cached(engines: &Arc<Engines>, engine: &Arc<Engine>, digest: &str) -> Result<Option<Component>, Error> {
    let (engines, engine, digest) = (engines.clone(), engine.clone(), digest.to_owned());
    let load = move || {
        let cache = engines.code_cache.as_ref();
        Ok(cache.and_then(|cache| cache.load(&engine, &digest)))
    };
    blocking(load).await
}

fn compile(engines: &Engines, engine: &Engine, source: &Source, digest: &str) -> Result<Component, Error> {
    let bytes = source.read(digest, engines.limits.component_bytes_max)?;
    let component = engine.compile(&bytes)?;
    if let Some(cache) = &engines.code_cache {
        cache.store(engine, digest, &component);
    }
    Ok(component)
}

/// Runs blocking work on a thread for blocking tasks. Converts a panic to an error.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Error::new(
            ErrorKind::Internal,
            Phase::Load,
            "reading the component failed unexpectedly",
        )
        .with_source(error))
    })
}
