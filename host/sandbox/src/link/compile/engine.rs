//! The wasmtime engines of a runtime, at most one for each [`Profile`], each with its linker.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::{Deserialize, Serialize};
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::cache::CodeCache;
use super::compile_permits::CompilePermits;
use super::compiler::Compiler;
use super::host_setting::{host_setting_error, start_threads};
use crate::inspect::footprint::{CORE_INSTANCES_PER_SLOT, TABLES_PER_SLOT};
use crate::inspect::imports::WasiVersions;
use crate::inspect::inspection::Inspection;
use crate::inspect::profile::Profile;
use crate::link::host::host_state::HostState;
use crate::link::host::{wasi, wasi3};
use crate::link::limits::ticker::Ticker;
use toolwit_core::limits::{CallLimits, EngineLimits};
use toolwit_core::{Error, ErrorKind, Phase};

/// The maximum memory that stays resident in each unused linear memory and each unused table of the instance pool, in bytes, if
/// the kernel reports which pages were touched.
const RESIDENT_BYTES_MAX_WITH_PAGEMAP: usize = 1 << 20;

/// The same maximum if the kernel does not report the touched pages. wasmtime then clears all resident bytes after each call.
const RESIDENT_BYTES_MAX_WITHOUT_PAGEMAP: usize = 64 << 10;

/// The address space that wasmtime reserves for a linear memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MemoryReservation {
    /// 4 GiB and guard pages, so that machine code needs no checks of addresses.
    Full,
    /// Only the present size of the memory. Machine code checks each address.
    Small,
}

impl MemoryReservation {
    /// Returns the reservation for an engine of this process that has no pool of memories.
    pub(super) fn of_process() -> Self {
        match address_space_bytes_max() {
            Some(_) => Self::Small,
            None => Self::Full,
        }
    }
}

/// A wasmtime engine and the linker of its components.
pub(crate) struct Engine {
    pub(crate) wasmtime: wasmtime::Engine,
    pub(super) reservation: MemoryReservation,
    pub(crate) linker: Linker<HostState>,
}

/// The engines of a runtime, and the settings and services for compiling with them. An engine is created when it is first needed.
pub(crate) struct Engines {
    pub(crate) limits: EngineLimits,
    pub(crate) ticker: Arc<Ticker>,
    pub(crate) code_cache: Option<CodeCache>,
    pub(super) compiler: Compiler,
    pub(crate) compile_permits: CompilePermits,
    /// The versions of WASI that components can import.
    pub(crate) wasi: WasiVersions,
    /// Held while an engine is created, so that concurrent threads do not create the same engine twice.
    creation_lock: Mutex<()>,
    /// The engine of [`Profile::Plain`], without support for asynchronous component functions and streams.
    plain: OnceLock<Arc<Engine>>,
    /// The engine of [`Profile::Concurrent`], with this support.
    concurrent: OnceLock<Arc<Engine>>,
}

impl Engines {
    pub(crate) fn new(
        limits: EngineLimits,
        code_cache: Option<CodeCache>,
        compiler: Compiler,
        wasi: WasiVersions,
    ) -> Result<Self, Error> {
        Ok(Self {
            wasi,
            limits,
            ticker: Ticker::start()?,
            code_cache,
            compiler,
            compile_permits: CompilePermits::default(),
            creation_lock: Mutex::new(()),
            plain: OnceLock::new(),
            concurrent: OnceLock::new(),
        })
    }

    /// Returns the engine of a profile. The first call creates it, which takes milliseconds.
    pub(crate) fn get(&self, profile: Profile) -> Result<Arc<Engine>, Error> {
        let engine_cell = match profile {
            Profile::Plain => &self.plain,
            Profile::Concurrent => &self.concurrent,
        };
        if let Some(engine) = engine_cell.get() {
            return Ok(engine.clone());
        }
        let _guard = self.creation_lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have created the engine in the meantime.
        if let Some(engine) = engine_cell.get() {
            return Ok(engine.clone());
        }
        let engine = Arc::new(Engine::new(profile, &self.limits, self.wasi)?);
        self.ticker.add_engine(engine.wasmtime.weak());
        Ok(engine_cell.get_or_init(|| engine).clone())
    }

    /// Returns whether the code cache has an entry for a component.
    pub(crate) fn has_cached_code(&self, inspection: &Inspection) -> bool {
        let cache = self.code_cache.as_ref();
        cache.is_some_and(|cache| {
            let engine = self.get(inspection.profile);
            engine.is_ok_and(|engine| cache.contains(&engine, &inspection.digest))
        })
    }
}

impl Engine {
    /// Creates an engine with the first allocation strategy that the system supports, and its linker.
    fn new(profile: Profile, limits: &EngineLimits, wasi: WasiVersions) -> Result<Self, Error> {
        let pools = [
            Some(pool(limits, Enabled::Yes, RESIDENT_BYTES_MAX_WITH_PAGEMAP)),
            Some(pool(limits, Enabled::No, RESIDENT_BYTES_MAX_WITHOUT_PAGEMAP)),
            // The address space may be too small for a pool. Without a pool, wasmtime maps memory for each instance.
            None,
        ];
        let mut last_error = None;
        for pool in pools {
            let reservation = match &pool {
                Some(_) => MemoryReservation::Full,
                None => MemoryReservation::of_process(),
            };
            match wasmtime::Engine::new(&config(profile, limits.stack_bytes_max, pool, reservation)) {
                Ok(engine) => {
                    let linker = match (profile, wasi) {
                        (Profile::Concurrent, WasiVersions::Wasi2And3) => wasi3::linker(&engine),
                        _ => wasi::linker(&engine),
                    };
                    let linker =
                        linker.map_err(|error| internal_error("the host interfaces could not be linked", error))?;
                    return Ok(Self {
                        reservation,
                        wasmtime: engine,
                        linker,
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "an allocation strategy is not available");
                    last_error = Some(error);
                }
            }
        }
        let source = last_error.map_or_else(
            || "no allocation strategy was tried".to_owned(),
            |error| format!("{error:#}"),
        );
        Err(Error::new(
            ErrorKind::Internal,
            Phase::Load,
            "the WebAssembly engine could not be created",
        )
        .with_source(source))
    }

    /// Returns the hash of this engine; see the function [`compatibility_hash`].
    pub(super) fn compatibility_hash(&self) -> u64 {
        compatibility_hash(&self.wasmtime)
    }

    /// Compiles a component. This takes seconds for a large component, and cannot be interrupted.
    pub(crate) fn compile(&self, bytes: &[u8]) -> Result<Component, Error> {
        Component::from_binary(&self.wasmtime, bytes).map_err(|error| {
            if let Some(error) = host_setting_error(&error) {
                return error;
            }
            Error::new(
                ErrorKind::Unsupported,
                Phase::Load,
                format!("it could not be compiled: {}", error.root_cause()),
            )
            .with_source(format!("{error:#}"))
        })
    }
}

fn internal_error(message: &str, source: wasmtime::Error) -> Error {
    Error::new(ErrorKind::Internal, Phase::Load, message).with_source(format!("{source:#}"))
}

/// Creates an engine that only compiles, and reserves no address space for instances.
pub(super) fn compiler_engine(
    profile: Profile,
    stack_bytes_max: usize,
    reservation: MemoryReservation,
) -> wasmtime::Result<wasmtime::Engine> {
    let mut config = config(profile, stack_bytes_max, None, reservation);
    // The compiler starts a thread for each processor, and panics if the system refuses one.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    config.parallel_compilation(start_threads(processors).is_ok());
    wasmtime::Engine::new(&config)
}

/// Returns the limit of this process's address space, in bytes. `None` without a limit.
#[cfg(target_os = "linux")]
pub(super) fn address_space_bytes_max() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::As).current
}

#[cfg(not(target_os = "linux"))]
pub(super) fn address_space_bytes_max() -> Option<u64> {
    None
}

/// Returns a hash of the engine's version and settings. Machine code can be loaded only into an engine with the same hash as the
/// engine that compiled it.
pub(super) fn compatibility_hash(engine: &wasmtime::Engine) -> u64 {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher.finish()
}

fn config(
    profile: Profile,
    stack_bytes_max: usize,
    pool: Option<PoolingAllocationConfig>,
    reservation: MemoryReservation,
) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .consume_fuel(true)
        .max_wasm_stack(stack_bytes_max)
        // Host functions run on the same stack as the guest and need additional space.
        .async_stack_size(stack_bytes_max + (1 << 20))
        .memory_init_cow(true)
        // Exceptions need a heap, which is allocated and counted like a memory of the guest. Other objects of the heap have no use.
        .wasm_exceptions(true)
        .wasm_gc(false)
        .concurrency_support(matches!(profile, Profile::Concurrent));
    if reservation == MemoryReservation::Small {
        config
            .memory_reservation(0)
            .memory_reservation_for_growth(1 << 20)
            .memory_guard_size(0)
            .guard_before_linear_memory(false);
    }
    if let Some(pool) = pool {
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    }
    config
}

fn pool(limits: &EngineLimits, pagemap_scan: Enabled, resident_bytes: usize) -> PoolingAllocationConfig {
    let instances = limits.instances_max;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(CORE_INSTANCES_PER_SLOT))
        .total_memories(instances)
        .total_tables(instances.saturating_mul(TABLES_PER_SLOT))
        .total_stacks(instances)
        .total_gc_heaps(instances)
        .max_memories_per_module(4)
        .max_tables_per_module(8)
        .table_elements(usize::try_from(CallLimits::default().table_elements_max).unwrap_or(usize::MAX))
        .max_memory_size(usize::try_from(limits.memory_bytes_max).unwrap_or(usize::MAX))
        .linear_memory_keep_resident(resident_bytes)
        .table_keep_resident(resident_bytes)
        .async_stack_keep_resident(64 << 10)
        .max_unused_warm_slots(instances)
        .pagemap_scan(pagemap_scan);
    pool
}
