//! The WASI context of one instance, which is built when the guest first calls WASI.

use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{Deterministic, WasiCtx, WasiCtxBuilder};
use zeroize::Zeroizing;

use super::frozen::{FrozenClock, frozen_bytes};
use super::log_buffer::LogBuffer;
use super::wasi::frozen_second;
use crate::grants::authority::Authority;
use crate::grants::{EffectiveRights, RandomRule};
use toolwit_core::limits::RANDOM_BYTES_MAX;

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

/// The WASI context of an instance. Many components import WASI and never call it, so the context is built at the first
/// call. Its settings are fixed when the instance is created.
pub(super) struct WasiContext {
    settings: Settings,
    /// `None` until the first call.
    context: Option<Box<WasiCtx>>,
}

/// The settings from which the context is built.
struct Settings {
    stdio: Stdio,
    log: LogBuffer,
    /// The granted environment variables.
    variables: Vec<(String, Zeroizing<String>)>,
    /// The second since 1970 at which the clocks are frozen; `None` for real clocks.
    frozen_second: Option<u64>,
    random: Option<RandomRule>,
}

impl WasiContext {
    /// Creates a context with the granted environment variables, clocks and random bytes. Without a grant or an authority,
    /// clocks are frozen at the second 0 and random bytes are zero.
    pub(super) fn new(stdio: Stdio, log: &LogBuffer, authority: Option<&Authority>) -> Self {
        let rights = authority.map(|authority| &authority.rights.effective);
        Self {
            settings: Settings {
                stdio,
                log: log.clone(),
                variables: authority.map_or_else(Vec::new, |authority| authority.variables.clone()),
                frozen_second: rights.map_or(Some(0), frozen_second),
                random: rights.and_then(EffectiveRights::random),
            },
            context: None,
        }
    }

    /// Returns the context. The first call builds it.
    pub(super) fn get(&mut self) -> &mut WasiCtx {
        let Self { settings, context } = self;
        context.get_or_insert_with(|| Box::new(settings.build()))
    }
}

impl Settings {
    /// Builds the context. Moves the standard input of a program into the context, so the context can be built only once.
    fn build(&mut self) -> WasiCtx {
        let mut wasi = WasiCtxBuilder::new();
        // The builder denies files, environment, arguments, addresses and name lookup by default. The code below sets
        // everything else.
        wasi.max_random_size(RANDOM_BYTES_MAX).allow_tcp(false).allow_udp(false);
        for (name, value) in &self.variables {
            wasi.env(name, value.as_str());
        }
        if let Some(second) = self.frozen_second {
            wasi.wall_clock(FrozenClock(second))
                .monotonic_clock(FrozenClock(second));
        }
        match self.random {
            Some(RandomRule::Real) => {}
            Some(RandomRule::Frozen(seed)) => {
                wasi.secure_random(Deterministic::new(frozen_bytes(seed, "secure")))
                    .insecure_random(Deterministic::new(frozen_bytes(seed, "insecure")))
                    .insecure_random_seed(u128::from(seed));
            }
            // Without a grant, random bytes are zero. Zeros are cheaper than bytes from a seed, which most components never read.
            None => {
                wasi.secure_random(Deterministic::new(vec![0]))
                    .insecure_random(Deterministic::new(vec![0]))
                    .insecure_random_seed(0);
            }
        }
        match &mut self.stdio {
            Stdio::Log => wasi.stdout(self.log.clone()).stderr(self.log.clone()),
            Stdio::Program {
                args,
                stdin,
                stdout,
                stderr,
            } => wasi
                .args(args)
                .stdin(MemoryInputPipe::new(std::mem::take(stdin)))
                .stdout(stdout.clone())
                .stderr(stderr.clone()),
        };
        wasi.build()
    }
}
