//! `wasi:logging/logging`: messages for the log of the call.

use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Lift, Linker};

use super::host_state::HostState;
use crate::inspect::interfaces::LOGGERS;

/// The type `level` of the interface.
#[derive(Clone, Copy, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(
    dead_code,
    reason = "the host only receives levels: wasmtime creates the variants from numbers of the guest"
)]
enum Level {
    #[component(name = "trace")]
    Trace,
    #[component(name = "debug")]
    Debug,
    #[component(name = "info")]
    Info,
    #[component(name = "warn")]
    Warn,
    #[component(name = "error")]
    Error,
    #[component(name = "critical")]
    Critical,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

/// Links the interface in all versions of [`LOGGERS`].
pub(crate) fn add_to_linker(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    for name in LOGGERS {
        linker.instance(name)?.func_wrap(
            "log",
            |mut store: StoreContextMut<'_, HostState>, (level, context, message): (Level, String, String)| {
                let state = store.data_mut();
                state.meter.count_host_call();
                let separator = if context.is_empty() { "" } else { ": " };
                let line = format!("{}: {context}{separator}{message}\n", level.name());
                state.log.push(line.as_bytes());
                Ok(())
            },
        )?;
    }
    Ok(())
}
