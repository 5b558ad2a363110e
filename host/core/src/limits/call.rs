//! Bounds of one call.

use std::time::Duration;

use super::engine::EngineLimits;
use crate::error::{Error, ErrorKind, Phase};

/// The bounds of one call: instantiation, the guest, its host calls, `id` and `describe` share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Fuel, about one unit an instruction. The default lasts about three seconds of computing.
    pub fuel_max: u64,
    /// Wall-clock time.
    pub wall_max: Duration,
    /// Memory of the instance, in bytes, over all its linear memories.
    pub memory_bytes_max: u64,
    /// The stack of WebAssembly code, in bytes: the process's, the same for every call.
    pub stack_bytes_max: usize,
    /// Elements over all tables of the instance.
    pub table_elements_max: u64,
    /// Core instances, memories and tables, each. A component of a large toolchain has a dozen.
    pub instances_max: usize,
    /// The result as JSON, in bytes.
    pub result_bytes_max: u64,
    /// What is kept of standard output, error and log, in bytes; more is dropped, and the call goes on.
    pub log_bytes_max: usize,
    /// Objects that the guest hands over beside the result, as JSON, in bytes.
    pub artifact_bytes_max: u64,
    /// Calls from the guest into the host.
    pub host_calls_max: u64,
    /// Bytes that one call into the host, or one result, may copy out of the guest.
    pub host_call_bytes_max: u64,
    /// Host resources and component handles that are alive at once.
    pub resources_max: usize,
    /// Requests that the guest sends, with those of the calls that it makes.
    pub http_requests_max: u32,
    /// Bytes of its requests and their responses, headers and bodies, with those of the calls that it makes.
    pub http_bytes_max: u64,
    /// Calls that are inside each other, the outermost included: one is a call that makes none. Each holds an instance, with
    /// its memory, until those inside it end.
    pub nested_depth_max: u32,
    /// Calls of other tools that the guest makes, with those that they make.
    pub nested_calls_max: u32,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            fuel_max: 20_000_000_000,
            wall_max: Duration::from_secs(30),
            memory_bytes_max: 256 << 20,
            stack_bytes_max: 1 << 20,
            table_elements_max: 100_000,
            instances_max: 64,
            result_bytes_max: 1 << 20,
            log_bytes_max: 256 << 10,
            artifact_bytes_max: 16 << 20,
            host_calls_max: 10_000,
            host_call_bytes_max: 16 << 20,
            resources_max: 4_096,
            http_requests_max: 20,
            http_bytes_max: 16 << 20,
            nested_depth_max: 4,
            nested_calls_max: 32,
        }
    }
}

/// Bounds that somebody asks for; what is not set is left to the next in line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitRequest {
    /// See [`CallLimits::fuel_max`].
    pub fuel_max: Option<u64>,
    /// See [`CallLimits::wall_max`].
    pub wall_max: Option<Duration>,
    /// See [`CallLimits::memory_bytes_max`].
    pub memory_bytes_max: Option<u64>,
    /// See [`CallLimits::result_bytes_max`].
    pub result_bytes_max: Option<u64>,
    /// See [`CallLimits::log_bytes_max`].
    pub log_bytes_max: Option<usize>,
    /// See [`CallLimits::host_calls_max`].
    pub host_calls_max: Option<u64>,
    /// See [`CallLimits::http_requests_max`]. Zero means none.
    pub http_requests_max: Option<u32>,
    /// See [`CallLimits::http_bytes_max`].
    pub http_bytes_max: Option<u64>,
    /// See [`CallLimits::nested_depth_max`].
    pub nested_depth_max: Option<u32>,
    /// See [`CallLimits::nested_calls_max`]. Zero means none.
    pub nested_calls_max: Option<u32>,
}

impl LimitRequest {
    /// Asks for nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Asks for a bound of fuel.
    #[must_use]
    pub fn fuel(mut self, fuel_max: u64) -> Self {
        self.fuel_max = Some(fuel_max);
        self
    }

    /// Asks for a bound of wall-clock time.
    #[must_use]
    pub fn wall(mut self, wall_max: Duration) -> Self {
        self.wall_max = Some(wall_max);
        self
    }

    /// Asks for a bound of memory, in bytes.
    #[must_use]
    pub fn memory_bytes(mut self, memory_bytes_max: u64) -> Self {
        self.memory_bytes_max = Some(memory_bytes_max);
        self
    }

    /// Asks for a bound of the result, in bytes.
    #[must_use]
    pub fn result_bytes(mut self, result_bytes_max: u64) -> Self {
        self.result_bytes_max = Some(result_bytes_max);
        self
    }

    /// Asks for a bound of requests.
    #[must_use]
    pub fn http_requests(mut self, http_requests_max: u32) -> Self {
        self.http_requests_max = Some(http_requests_max);
        self
    }

    /// Asks for a bound of what requests and their responses weigh, in bytes.
    #[must_use]
    pub fn http_bytes(mut self, http_bytes_max: u64) -> Self {
        self.http_bytes_max = Some(http_bytes_max);
        self
    }

    /// Asks for a bound of calls inside each other, the outermost included.
    #[must_use]
    pub fn nested_depth(mut self, nested_depth_max: u32) -> Self {
        self.nested_depth_max = Some(nested_depth_max);
        self
    }

    /// Asks for a bound of the calls that a call makes.
    #[must_use]
    pub fn nested_calls(mut self, nested_calls_max: u32) -> Self {
        self.nested_calls_max = Some(nested_calls_max);
        self
    }

    /// Takes each bound from `self`, else from `other`.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            fuel_max: self.fuel_max.or(other.fuel_max),
            wall_max: self.wall_max.or(other.wall_max),
            memory_bytes_max: self.memory_bytes_max.or(other.memory_bytes_max),
            result_bytes_max: self.result_bytes_max.or(other.result_bytes_max),
            log_bytes_max: self.log_bytes_max.or(other.log_bytes_max),
            host_calls_max: self.host_calls_max.or(other.host_calls_max),
            http_requests_max: self.http_requests_max.or(other.http_requests_max),
            http_bytes_max: self.http_bytes_max.or(other.http_bytes_max),
            nested_depth_max: self.nested_depth_max.or(other.nested_depth_max),
            nested_calls_max: self.nested_calls_max.or(other.nested_calls_max),
        }
    }

    /// Refuses bounds under which nothing could run.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for a bound of zero.
    pub fn check(&self) -> Result<(), Error> {
        let zeros = [
            ("fuel_max", self.fuel_max == Some(0)),
            ("wall_ms_max", self.wall_max == Some(Duration::ZERO)),
            ("memory_bytes_max", self.memory_bytes_max == Some(0)),
            ("result_bytes_max", self.result_bytes_max == Some(0)),
            ("host_calls_max", self.host_calls_max == Some(0)),
            ("http_bytes_max", self.http_bytes_max == Some(0)),
            ("nested_depth_max", self.nested_depth_max == Some(0)),
        ];
        match zeros.into_iter().find(|(_, is_zero)| *is_zero) {
            Some((name, _)) => Err(Error::new(
                ErrorKind::Configuration,
                Phase::Registry,
                format!("the limit `{name}` is zero, so that no call could run"),
            )
            .with_suggestion("leave it out for the default, or give a positive bound")),
            None => Ok(()),
        }
    }
}

/// Computes a call's bounds: the smallest of the process's ceiling, what the operator allows, and what was asked for.
///
/// What the operator left open is at its default, so that a plugin can lower its bounds and never raise them.
#[must_use]
pub fn effective(engine: &EngineLimits, operator: &LimitRequest, request: &LimitRequest) -> CallLimits {
    let defaults = CallLimits::default();
    CallLimits {
        fuel_max: smallest(operator.fuel_max, defaults.fuel_max, request.fuel_max),
        wall_max: smallest(operator.wall_max, defaults.wall_max, request.wall_max).min(engine.call_wall_max),
        memory_bytes_max: smallest(
            operator.memory_bytes_max,
            defaults.memory_bytes_max,
            request.memory_bytes_max,
        )
        .min(engine.memory_bytes_max),
        result_bytes_max: smallest(
            operator.result_bytes_max,
            defaults.result_bytes_max,
            request.result_bytes_max,
        ),
        log_bytes_max: smallest(operator.log_bytes_max, defaults.log_bytes_max, request.log_bytes_max),
        host_calls_max: smallest(operator.host_calls_max, defaults.host_calls_max, request.host_calls_max),
        http_requests_max: smallest(
            operator.http_requests_max,
            defaults.http_requests_max,
            request.http_requests_max,
        ),
        http_bytes_max: smallest(operator.http_bytes_max, defaults.http_bytes_max, request.http_bytes_max),
        nested_depth_max: smallest(
            operator.nested_depth_max,
            defaults.nested_depth_max,
            request.nested_depth_max,
        )
        .min(engine.nested_depth_max),
        nested_calls_max: smallest(
            operator.nested_calls_max,
            defaults.nested_calls_max,
            request.nested_calls_max,
        ),
        stack_bytes_max: engine.stack_bytes_max,
        ..defaults
    }
}

fn smallest<T: Ord>(operator: Option<T>, default: T, request: Option<T>) -> T {
    let allowed = operator.unwrap_or(default);
    match request {
        Some(asked) => asked.min(allowed),
        None => allowed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_lowers_a_bound_and_never_raises_it() {
        let engine = EngineLimits::default();
        let operator = LimitRequest::none().fuel(1_000).wall(Duration::from_secs(60));
        let lower = effective(
            &engine,
            &operator,
            &LimitRequest::none().fuel(10).wall(Duration::from_secs(1)),
        );
        assert_eq!((lower.fuel_max, lower.wall_max), (10, Duration::from_secs(1)));
        let higher = effective(
            &engine,
            &operator,
            &LimitRequest::none().fuel(u64::MAX).wall(Duration::MAX),
        );
        assert_eq!((higher.fuel_max, higher.wall_max), (1_000, Duration::from_secs(60)));
        let unset = effective(&engine, &LimitRequest::none(), &LimitRequest::none().fuel(u64::MAX));
        assert_eq!(
            unset,
            CallLimits::default(),
            "without an operator's word the default is the bound"
        );
    }

    #[test]
    fn the_ceiling_binds_the_operator_too() {
        let engine = EngineLimits::default();
        let operator = LimitRequest::none()
            .memory_bytes(u64::MAX)
            .wall(Duration::MAX)
            .nested_depth(u32::MAX);
        let limits = effective(&engine, &operator, &LimitRequest::none());
        assert_eq!(limits.memory_bytes_max, engine.memory_bytes_max);
        assert_eq!(limits.wall_max, engine.call_wall_max);
        assert_eq!(limits.nested_depth_max, engine.nested_depth_max);
    }

    // attack: B16
    #[test]
    fn a_bound_of_zero_is_refused() {
        for zero in [
            LimitRequest::none().fuel(0),
            LimitRequest::none().wall(Duration::ZERO),
            LimitRequest::none().memory_bytes(0),
            LimitRequest::none().http_bytes(0),
            LimitRequest::none().nested_depth(0),
        ] {
            assert!(zero.check().is_err(), "{zero:?}");
        }
        for sound in [
            LimitRequest::none().fuel(u64::MAX),
            LimitRequest::none().http_requests(0),
            LimitRequest::none().nested_calls(0),
        ] {
            assert!(sound.check().is_ok(), "{sound:?}");
        }
    }
}
