//! `toolwit:plugin/log`: log messages with a severity.

use wasmtime::component::{ComponentType, Lift};

use super::Context;
use toolwit_core::LogLevel;

/// The severity of a log message.
#[derive(Clone, Copy, ComponentType, Lift)]
#[component(enum)]
#[repr(u8)]
#[allow(
    dead_code,
    reason = "the host only receives levels: wasmtime creates the variants from numbers of the guest"
)]
pub(super) enum WitLogLevel {
    #[component(name = "debug")]
    Debug,
    #[component(name = "info")]
    Info,
    #[component(name = "notice")]
    Notice,
    #[component(name = "warning")]
    Warning,
    #[component(name = "error")]
    Error,
    #[component(name = "critical")]
    Critical,
    #[component(name = "alert")]
    Alert,
    #[component(name = "emergency")]
    Emergency,
}

impl From<WitLogLevel> for LogLevel {
    fn from(level: WitLogLevel) -> Self {
        match level {
            WitLogLevel::Debug => Self::Debug,
            WitLogLevel::Info => Self::Info,
            WitLogLevel::Notice => Self::Notice,
            WitLogLevel::Warning => Self::Warning,
            WitLogLevel::Error => Self::Error,
            WitLogLevel::Critical => Self::Critical,
            WitLogLevel::Alert => Self::Alert,
            WitLogLevel::Emergency => Self::Emergency,
        }
    }
}

/// Sends a message to the output of the call. If the output accepts no log messages, adds the message to the log of the call.
pub(super) fn write(store: &mut Context<'_>, level: WitLogLevel, text: &str) -> wasmtime::Result<()> {
    let level = LogLevel::from(level);
    let state = store.data_mut();
    if !state.conversation()?.log_for_user(level, text) {
        state.log.push(format!("{level}: {text}\n").as_bytes());
    }
    Ok(())
}
