//! Mapping of wasmtime's errors to the errors of a call.

use std::time::Duration;

use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, ThrownException, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::link::compile::host_setting::host_setting_error;
use crate::link::host::host_state::HostState;
use crate::link::limits::call_clock::CallClock;
use crate::link::limits::growth_limiter::DeniedGrowth;
use crate::link::limits::host_files::HostFilesExceeded;
use crate::link::limits::host_memory::HostMemoryExceeded;
use crate::link::limits::stop_flag::StopCause;
use toolwit_core::limits::{ByteCount, CallLimits, Span};
use toolwit_core::text::printable;
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};

/// The maximum number of characters that a trap's message quotes from the end of the guest's output. A panic message fits.
const OUTPUT_END_CHARS_MAX: usize = 400;

/// The maximum number of function names in a trap's message.
const FRAMES_MAX: usize = 4;

/// The maximum length of a function name in a trap's message, in characters.
const FUNCTION_NAME_CHARS_MAX: usize = 200;

/// Maps a failure of guest code to the error of the call. If the guest exceeded a limit, the error contains the limit.
pub(super) fn guest_error(error: &wasmtime::Error, state: &HostState, clock: &CallClock<'_>, phase: Phase) -> Error {
    if let Some(cause) = state.meter.stop.cause() {
        return stop_error(cause, clock, phase, state.meter.host_calls());
    }
    let limits = clock.limits;
    let mapped = match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => fuel_error(limits, phase),
        // Not expected: an epoch interruption follows a raised stop flag, and `cause` above returns the cause of that flag.
        Some(Trap::Interrupt) => stop_error(StopCause::Deadline, clock, phase, 0),
        Some(Trap::StackOverflow) => stack_error(limits, phase),
        trap => exit_error(error, phase)
            .or_else(|| denied_growth_error(state, limits, phase))
            .or_else(|| host_limit_error(error, limits, phase))
            .or_else(|| refused_memory_error(error))
            .unwrap_or_else(|| trap_error(error, trap, state, phase)),
    };
    mapped.with_source(format!("{error:#}"))
}

/// Returns the error of a call whose guest the host stopped. `host_calls` is the number of calls that the guest made to the
/// host.
pub(super) fn stop_error(cause: StopCause, clock: &CallClock<'_>, phase: Phase, host_calls: u64) -> Error {
    let limits = clock.limits;
    match cause {
        StopCause::Deadline => {
            let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
            let message = format!("the call ran past its deadline of {}", Span(limits.wall_max));
            Error::new(ErrorKind::Timeout, phase, message)
                .with_suggestion("it may have taken effect; request less in one call, or allow more time")
                .with_limit(ExceededLimit::new(
                    "wall_max",
                    millis(limits.wall_max),
                    millis(clock.started.elapsed()),
                ))
        }
        StopCause::Cancelled => Error::new(ErrorKind::Cancelled, phase, "the call was cancelled")
            .with_suggestion("it may have taken effect"),
        StopCause::HostCalls => {
            let max = limits.host_calls_max;
            let message = format!("the guest called the host more than {max} times");
            limit_error(
                ErrorKind::HostCalls,
                phase,
                message,
                ExceededLimit::new("host_calls_max", max, host_calls),
            )
        }
    }
}

fn limit_error(kind: ErrorKind, phase: Phase, message: String, limit: ExceededLimit) -> Error {
    Error::new(kind, phase, message)
        .with_suggestion(format!(
            "request less in one call; an operator can raise `{}`",
            limit.limit
        ))
        .with_limit(limit)
}

fn fuel_error(limits: &CallLimits, phase: Phase) -> Error {
    let max = limits.fuel_max;
    let message = format!("the call used all its fuel of {max}");
    limit_error(
        ErrorKind::Fuel,
        phase,
        message,
        ExceededLimit::new("fuel_max", max, max),
    )
}

fn stack_error(limits: &CallLimits, phase: Phase) -> Error {
    let max = limits.stack_bytes_max as u64;
    let message = format!("the call stack of {} is exhausted", ByteCount(max));
    Error::new(ErrorKind::Stack, phase, message)
        .with_suggestion("the guest recurses endlessly, or deeper than the host allows")
        .with_limit(ExceededLimit::new("stack_bytes_max", max, max))
}

/// Returns the error of the last denied growth of a memory or table, or `None` if no growth was denied. The guest can trap later
/// than the denied growth, and the trap is still attributed to the growth.
fn denied_growth_error(state: &HostState, limits: &CallLimits, phase: Phase) -> Option<Error> {
    Some(match state.limiter.last_denied_growth()? {
        DeniedGrowth::Memory { bytes } => memory_error(bytes, limits, phase),
        DeniedGrowth::SharedMemory { bytes_max } => shared_memory_error(bytes_max, phase),
        DeniedGrowth::TableElements { elements } => table_error(elements, limits, phase),
    })
}

/// Returns the error for a memory that would exceed its limit.
fn memory_error(bytes: u64, limits: &CallLimits, phase: Phase) -> Error {
    let max = limits.memory_bytes_max;
    let message = format!(
        "the guest requested {} of memory and may have {}",
        ByteCount(bytes),
        ByteCount(max)
    );
    limit_error(
        ErrorKind::Memory,
        phase,
        message,
        ExceededLimit::new("memory_bytes_max", max, bytes),
    )
}

/// Returns the error for a memory that would exceed the caller's share of the memory of all calls.
fn shared_memory_error(bytes_max: u64, phase: Phase) -> Error {
    let message = format!(
        "the calls that run now use too much of the {} of memory for all calls",
        ByteCount(bytes_max)
    );
    Error::new(ErrorKind::Busy, phase, message)
        .with_suggestion("call again when other calls have ended")
        .with_limit(ExceededLimit::new("guest_memory_bytes_max", bytes_max, bytes_max))
}

/// Returns the error for guest resources that hold too much memory of the host.
fn host_memory_error(bytes: u64, limits: &CallLimits, phase: Phase) -> Error {
    let max = limits.host_memory_bytes_max;
    let message = format!(
        "the resources of the guest hold {} of the host's memory and may hold {}",
        ByteCount(bytes),
        ByteCount(max)
    );
    limit_error(
        ErrorKind::Resources,
        phase,
        message,
        ExceededLimit::new("host_memory_bytes_max", max, bytes),
    )
}

/// Returns the error for a guest that has too many files and connections open.
fn files_error(HostFilesExceeded { count, max }: HostFilesExceeded, phase: Phase) -> Error {
    let message = format!("the guest has {count} files and connections open, and all calls together may have {max}");
    Error::new(ErrorKind::Resources, phase, message)
        .with_suggestion("open fewer files at once, or call again when other calls have ended; an operator can raise `guest_files_max`")
        .with_limit(ExceededLimit::new("guest_files_max", max, max.saturating_add(1)))
}

/// Returns the error for a table that would exceed its limit.
fn table_error(elements: u64, limits: &CallLimits, phase: Phase) -> Error {
    let max = limits.table_elements_max;
    let message = format!("the guest requested {elements} table elements and may have {max}");
    limit_error(
        ErrorKind::TableElements,
        phase,
        message,
        ExceededLimit::new("table_elements_max", max, elements),
    )
}

/// Returns the error for a guest that called `exit`, or `None` for any other failure. A command-line program may call `exit`, and
/// [`CommandCall`](super::command::CommandCall) ignores this error.
fn exit_error(error: &wasmtime::Error, phase: Phase) -> Option<Error> {
    let I32Exit(status) = error.downcast_ref()?;
    let message = format!("the guest exited with status {status}");
    Some(Error::new(ErrorKind::Trap, phase, message))
}

/// Returns the error for a limit that the host or wasmtime enforces outside of guest code, or `None` for any other failure.
fn host_limit_error(error: &wasmtime::Error, limits: &CallLimits, phase: Phase) -> Option<Error> {
    if error.is::<PoolConcurrencyLimitError>() {
        return Some(
            Error::new(ErrorKind::Busy, phase, "the host has no free slot for another instance")
                .with_suggestion("call again when other calls have ended"),
        );
    }
    if let Some(HostMemoryExceeded { bytes }) = error.downcast_ref() {
        return Some(host_memory_error(*bytes, limits, phase));
    }
    if let Some(exceeded) = error.downcast_ref() {
        return Some(files_error(*exceeded, phase));
    }
    Some(match untyped_limit(error)? {
        // wasmtime reports this limit for the arguments of host calls and for the result of the guest. Only an error in a
        // host call has a backtrace, because the guest no longer runs when its result is read.
        UntypedLimit::HostCallBytes if !error.is::<WasmBacktrace>() => {
            let max = limits.result_bytes_max;
            Error::new(
                ErrorKind::ResultBytes,
                phase,
                format!("the result has more than {}", ByteCount(max)),
            )
            .with_suggestion("request less in one call")
            .with_limit(ExceededLimit::new("result_bytes_max", max, max.saturating_add(1)))
        }
        limit => limit.error(limits, phase),
    })
}

/// Returns the error of the host if the system refused memory for an instance or a stack. `None` for any other failure, and for
/// a failure in a call from the guest to the host, which the guest may have caused.
fn refused_memory_error(error: &wasmtime::Error) -> Option<Error> {
    if error.is::<WasmBacktrace>() {
        return None;
    }
    host_setting_error(error)
}

/// A limit that wasmtime can report without a public error type.
#[derive(Clone, Copy)]
enum UntypedLimit {
    HostCallBytes,
    Resources,
}

/// Recognizes a limit of wasmtime by the public type of its error, or by its text if it has no public type.
///
/// Only this function compares the text of an error message. wasmtime 48 has no public type for two errors:
/// `HostcallFuelExhausted` is private, and the handle table fails with a plain message. The tests
/// `bytes_passed_to_the_host_are_limited` and `handles_of_a_guest_are_limited` reach these limits and fail if a text changes.
fn untyped_limit(error: &wasmtime::Error) -> Option<UntypedLimit> {
    if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
        return Some(UntypedLimit::Resources);
    }
    match error.root_cause().to_string().as_str() {
        "too much data is being copied between the host and the guest: fuel allocated for hostcalls has been exhausted" => {
            Some(UntypedLimit::HostCallBytes)
        }
        "cannot allocate another handle: store handle limit exceeded"
        | "cannot lend resource: store handle limit exceeded" => Some(UntypedLimit::Resources),
        _ => None,
    }
}

impl UntypedLimit {
    fn error(self, limits: &CallLimits, phase: Phase) -> Error {
        let (kind, message, name, max) = match self {
            Self::HostCallBytes => {
                let max = limits.host_call_bytes_max;
                let message = format!("the guest passed more than {} to the host at once", ByteCount(max));
                (ErrorKind::HostCallBytes, message, "host_call_bytes_max", max)
            }
            Self::Resources => {
                let max = limits.resources_max as u64;
                let message = format!("the guest holds more than {max} resources");
                (ErrorKind::Resources, message, "resources_max", max)
            }
        };
        // wasmtime does not report the requested number, which is at least one more than the limit.
        limit_error(
            kind,
            phase,
            message,
            ExceededLimit::new(name, max, max.saturating_add(1)),
        )
    }
}

/// Demangles the symbol of a function. The name is printable and of limited length.
fn function_name(symbol: &str) -> String {
    let name = format!("{:#}", rustc_demangle::demangle(symbol));
    printable(&name).chars().take(FUNCTION_NAME_CHARS_MAX).collect()
}

fn trap_error(error: &wasmtime::Error, trap: Option<&Trap>, state: &HostState, phase: Phase) -> Error {
    let cause = match trap {
        Some(trap) => trap.to_string(),
        None if error.is::<ThrownException>() => "it threw an exception and did not catch it".to_owned(),
        None => error.root_cause().to_string(),
    };
    let cause = printable(&cause);
    let mut message = format!(
        "the guest trapped: {}",
        cause.strip_prefix("wasm trap: ").unwrap_or(&cause)
    );
    let frames: Vec<_> = error
        .downcast_ref::<WasmBacktrace>()
        .into_iter()
        .flat_map(WasmBacktrace::frames)
        .filter_map(|frame| frame.func_name())
        .take(FRAMES_MAX)
        .map(function_name)
        .collect();
    if !frames.is_empty() {
        message.push_str(&format!(" (in {})", frames.join(", called by ")));
    }
    if let Some(output_end) = state.end_of_log(OUTPUT_END_CHARS_MAX) {
        message.push_str(&format!("; its output ends with: {output_end}"));
    }
    Error::new(ErrorKind::Trap, phase, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_rust_functions_are_demangled_and_cut() {
        for (symbol, name) in [
            (
                "_ZN3std9panicking10rust_panic17h0123456789abcdefE",
                "std::panicking::rust_panic",
            ),
            ("_RNvNtCs6TxCtTcuIIP_3std7process5abort", "std::process::abort"),
            ("main", "main"),
        ] {
            assert_eq!(function_name(symbol), name);
        }
        assert_eq!(function_name(&"a".repeat(5_000)).len(), FUNCTION_NAME_CHARS_MAX);
    }
}
