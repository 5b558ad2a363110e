//! The WASI implementation for guests: every supported interface is linked, and gives access only to granted resources.

use wasmtime::component::Linker;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{Deterministic, WasiCtx, WasiCtxBuilder};
use wasmtime_wasi_http::WasiHttpCtx;

use super::config;
use super::environment;
use super::files;
use super::frozen::{FrozenClock, frozen_bytes};
use super::host_api;
use super::host_state::HostState;
use super::keyvalue;
use super::log_buffer::LogBuffer;
use super::near;
use crate::grants::authority::Authority;
use crate::grants::{ClockRule, EffectiveRights, RandomRule};
use toolwit_core::limits::{HEADER_BYTES_MAX, RANDOM_BYTES_MAX};

/// Standard input, output and arguments of an instance.
pub(crate) enum Stdio {
    /// No arguments and no input. Output goes to the log.
    Log,
    /// The arguments and streams of a command-line program.
    Program {
        /// The name of the program and its arguments.
        args: Vec<String>,
        stdin: Vec<u8>,
        stdout: LogBuffer,
        stderr: LogBuffer,
    },
}

/// Creates the linker that all instances of an engine share.
pub(crate) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<HostState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    // The following interfaces replace or extend those of wasmtime, to enforce grants and quotas.
    linker.allow_shadowing(true);
    files::add_to_linker(&mut linker)?;
    environment::add_to_linker(&mut linker)?;
    config::add_to_linker(&mut linker)?;
    keyvalue::add_to_linker(&mut linker)?;
    host_api::add_to_linker(&mut linker)?;
    near::add_to_linker(&mut linker)?;
    linker.allow_shadowing(false);
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    Ok(linker)
}

/// Creates a WASI context with the granted variables. Clocks and random bytes are real if the grant permits it. Otherwise
/// clocks are frozen, and random bytes repeat or are zero. Without an authority, nothing is granted.
pub(crate) fn context(stdio: Stdio, log: &LogBuffer, authority: Option<&Authority>) -> WasiCtx {
    let mut wasi = WasiCtxBuilder::new();
    // By default, the builder denies files, environment, arguments, addresses and name lookup. The rest is configured here.
    wasi.max_random_size(RANDOM_BYTES_MAX).allow_tcp(false).allow_udp(false);
    for (name, value) in authority.iter().flat_map(|authority| &authority.variables) {
        wasi.env(name, value.as_str());
    }
    let rights = authority.map(|authority| &authority.rights.effective);
    if let Some(second) = rights.map_or(Some(0), frozen_second) {
        wasi.wall_clock(FrozenClock(second))
            .monotonic_clock(FrozenClock(second));
    }
    match rights.and_then(EffectiveRights::random) {
        Some(RandomRule::Real) => {}
        Some(RandomRule::Frozen(seed)) => {
            wasi.secure_random(Deterministic::new(frozen_bytes(seed, "secure")))
                .insecure_random(Deterministic::new(frozen_bytes(seed, "insecure")))
                .insecure_random_seed(u128::from(seed));
        }
        // Zeros are cheaper than seeded bytes. Most components do not import randomness.
        None => {
            wasi.secure_random(Deterministic::new(vec![0]))
                .insecure_random(Deterministic::new(vec![0]))
                .insecure_random_seed(0);
        }
    }
    match stdio {
        Stdio::Log => wasi.stdout(log.clone()).stderr(log.clone()),
        Stdio::Program {
            args,
            stdin,
            stdout,
            stderr,
        } => wasi
            .args(&args)
            .stdin(MemoryInputPipe::new(stdin))
            .stdout(stdout)
            .stderr(stderr),
    };
    wasi.build()
}

/// Returns the second since 1970 at which the clocks of a guest are frozen, which is zero without a grant. Returns `None` if
/// the guest may read the real time.
pub(super) fn frozen_second(rights: &EffectiveRights) -> Option<u64> {
    match rights.clock() {
        Some(ClockRule::Real) => None,
        Some(ClockRule::Frozen(second)) => Some(second),
        None => Some(0),
    }
}

/// Creates the HTTP context, which only limits the size of headers. Requests pass the gate of the instance.
pub(crate) fn http_context() -> WasiHttpCtx {
    let mut http = WasiHttpCtx::new();
    http.set_field_size_limit(HEADER_BYTES_MAX);
    http
}
