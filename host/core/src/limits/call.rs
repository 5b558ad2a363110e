//! Limits of one call.

use std::time::Duration;

use super::engine::EngineLimits;
use crate::error::{Error, ErrorKind, Phase};

/// The wall-clock limit of tools that the operator declares as long-running, such as jobs of another service, renderings or
/// crawls. If the operator sets a higher limit, the higher one applies.
pub const LONG_RUNNING_WALL: Duration = Duration::from_secs(300);

/// The limits of one call. They apply to the instantiation, the code of the guest, its host calls, and the methods `id` and
/// `describe` of the returned entities, all together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Fuel, about one unit per instruction. The default suffices for about three seconds of computation.
    pub fuel_max: u64,
    /// Wall-clock time of the call.
    pub wall_max: Duration,
    /// Memory of all linear memories of the instance, in bytes.
    pub memory_bytes_max: u64,
    /// The stack of WebAssembly code, in bytes; the same for every call of the process.
    pub stack_bytes_max: usize,
    /// Elements of all tables of the instance.
    pub table_elements_max: u64,
    /// Core instances. The same limit applies to memories, and to tables. A component that a large toolchain builds has about a
    /// dozen of each.
    pub instances_max: usize,
    /// Size of the result as JSON, in bytes.
    pub result_bytes_max: u64,
    /// Bytes of standard output, standard error and log that are stored; the rest is dropped, and the call continues. The same
    /// limit applies separately to the texts that the guest shows to the user.
    pub log_bytes_max: usize,
    /// Total size of the artifacts that the guest returns, as JSON, in bytes.
    pub artifact_bytes_max: u64,
    /// Calls from the guest into the host.
    pub host_calls_max: u64,
    /// Bytes that one call into the host, or one result, may copy out of the guest.
    pub host_call_bytes_max: u64,
    /// Live host resources and component handles.
    pub resources_max: usize,
    /// Memory of the host that live resources hold, in bytes: headers, buffers, connections, directory listings. A session
    /// instance keeps its resources between calls.
    pub host_memory_bytes_max: u64,
    /// HTTP requests of the guest, including those of nested calls.
    pub http_requests_max: u32,
    /// Bytes of HTTP requests and responses, headers and bodies, including those of nested calls.
    pub http_bytes_max: u64,
    /// Depth of nested calls, the outermost call included; 1 allows no nested call. Each call holds an instance with its memory
    /// until the calls inside it end.
    pub nested_depth_max: u32,
    /// Nested calls, including those that nested calls make.
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
            host_memory_bytes_max: 64 << 20,
            http_requests_max: 20,
            http_bytes_max: 16 << 20,
            nested_depth_max: 4,
            nested_calls_max: 32,
        }
    }
}

/// The limits of a call that one source sets: an operator, a project, a package or a caller. A limit that the source does not
/// set has the operator's value, or else the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitOverrides {
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
    /// See [`CallLimits::artifact_bytes_max`]. Zero allows no artifacts.
    pub artifact_bytes_max: Option<u64>,
    /// See [`CallLimits::host_calls_max`].
    pub host_calls_max: Option<u64>,
    /// See [`CallLimits::host_call_bytes_max`].
    pub host_call_bytes_max: Option<u64>,
    /// See [`CallLimits::resources_max`].
    pub resources_max: Option<usize>,
    /// See [`CallLimits::host_memory_bytes_max`].
    pub host_memory_bytes_max: Option<u64>,
    /// See [`CallLimits::http_requests_max`]. Zero allows no requests.
    pub http_requests_max: Option<u32>,
    /// See [`CallLimits::http_bytes_max`].
    pub http_bytes_max: Option<u64>,
    /// See [`CallLimits::nested_depth_max`].
    pub nested_depth_max: Option<u32>,
    /// See [`CallLimits::nested_calls_max`]. Zero allows no nested calls.
    pub nested_calls_max: Option<u32>,
}

impl LimitOverrides {
    /// Sets a fuel limit.
    #[must_use]
    pub fn with_fuel_max(mut self, fuel_max: u64) -> Self {
        self.fuel_max = Some(fuel_max);
        self
    }

    /// Sets a limit of wall-clock time.
    #[must_use]
    pub fn with_wall_max(mut self, wall_max: Duration) -> Self {
        self.wall_max = Some(wall_max);
        self
    }

    /// Raises the limit of wall-clock time to [`LONG_RUNNING_WALL`], unless it is higher already. A limit that is not set
    /// counts as the default.
    #[must_use]
    pub fn long_running(mut self) -> Self {
        let wall = self.wall_max.unwrap_or(CallLimits::default().wall_max);
        self.wall_max = Some(wall.max(LONG_RUNNING_WALL));
        self
    }

    /// Sets a memory limit, in bytes.
    #[must_use]
    pub fn with_memory_bytes_max(mut self, memory_bytes_max: u64) -> Self {
        self.memory_bytes_max = Some(memory_bytes_max);
        self
    }

    /// Sets a limit of the size of the result, in bytes.
    #[must_use]
    pub fn with_result_bytes_max(mut self, result_bytes_max: u64) -> Self {
        self.result_bytes_max = Some(result_bytes_max);
        self
    }

    /// Sets a limit of the stored standard output, standard error and log, in bytes.
    #[must_use]
    pub fn with_log_bytes_max(mut self, log_bytes_max: usize) -> Self {
        self.log_bytes_max = Some(log_bytes_max);
        self
    }

    /// Sets a limit of the total size of all artifacts, in bytes.
    #[must_use]
    pub fn with_artifact_bytes_max(mut self, artifact_bytes_max: u64) -> Self {
        self.artifact_bytes_max = Some(artifact_bytes_max);
        self
    }

    /// Sets a limit of the number of calls into the host.
    #[must_use]
    pub fn with_host_calls_max(mut self, host_calls_max: u64) -> Self {
        self.host_calls_max = Some(host_calls_max);
        self
    }

    /// Sets a limit of the bytes that one call into the host, or one result, copies.
    #[must_use]
    pub fn with_host_call_bytes_max(mut self, host_call_bytes_max: u64) -> Self {
        self.host_call_bytes_max = Some(host_call_bytes_max);
        self
    }

    /// Sets a limit of the number of live host resources and component handles.
    #[must_use]
    pub fn with_resources_max(mut self, resources_max: usize) -> Self {
        self.resources_max = Some(resources_max);
        self
    }

    /// Sets a limit of the host memory that resources hold, in bytes.
    #[must_use]
    pub fn with_host_memory_bytes_max(mut self, host_memory_bytes_max: u64) -> Self {
        self.host_memory_bytes_max = Some(host_memory_bytes_max);
        self
    }

    /// Sets a limit of the number of HTTP requests.
    #[must_use]
    pub fn with_http_requests_max(mut self, http_requests_max: u32) -> Self {
        self.http_requests_max = Some(http_requests_max);
        self
    }

    /// Sets a limit of HTTP traffic, in bytes.
    #[must_use]
    pub fn with_http_bytes_max(mut self, http_bytes_max: u64) -> Self {
        self.http_bytes_max = Some(http_bytes_max);
        self
    }

    /// Sets a limit of the depth of nested calls, the outermost call included.
    #[must_use]
    pub fn with_nested_depth_max(mut self, nested_depth_max: u32) -> Self {
        self.nested_depth_max = Some(nested_depth_max);
        self
    }

    /// Sets a limit of the number of nested calls.
    #[must_use]
    pub fn with_nested_calls_max(mut self, nested_calls_max: u32) -> Self {
        self.nested_calls_max = Some(nested_calls_max);
        self
    }

    /// Returns the limits of `self`. A limit that `self` does not set is taken from `other`.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            fuel_max: self.fuel_max.or(other.fuel_max),
            wall_max: self.wall_max.or(other.wall_max),
            memory_bytes_max: self.memory_bytes_max.or(other.memory_bytes_max),
            result_bytes_max: self.result_bytes_max.or(other.result_bytes_max),
            log_bytes_max: self.log_bytes_max.or(other.log_bytes_max),
            artifact_bytes_max: self.artifact_bytes_max.or(other.artifact_bytes_max),
            host_calls_max: self.host_calls_max.or(other.host_calls_max),
            host_call_bytes_max: self.host_call_bytes_max.or(other.host_call_bytes_max),
            resources_max: self.resources_max.or(other.resources_max),
            host_memory_bytes_max: self.host_memory_bytes_max.or(other.host_memory_bytes_max),
            http_requests_max: self.http_requests_max.or(other.http_requests_max),
            http_bytes_max: self.http_bytes_max.or(other.http_bytes_max),
            nested_depth_max: self.nested_depth_max.or(other.nested_depth_max),
            nested_calls_max: self.nested_calls_max.or(other.nested_calls_max),
        }
    }

    /// Checks that each limit that must be positive is not zero.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if such a limit is zero.
    pub fn check(&self) -> Result<(), Error> {
        let zeros = [
            ("fuel_max", self.fuel_max == Some(0)),
            ("wall_max", self.wall_max == Some(Duration::ZERO)),
            ("memory_bytes_max", self.memory_bytes_max == Some(0)),
            ("result_bytes_max", self.result_bytes_max == Some(0)),
            ("host_calls_max", self.host_calls_max == Some(0)),
            ("host_call_bytes_max", self.host_call_bytes_max == Some(0)),
            ("resources_max", self.resources_max == Some(0)),
            ("host_memory_bytes_max", self.host_memory_bytes_max == Some(0)),
            ("http_bytes_max", self.http_bytes_max == Some(0)),
            ("nested_depth_max", self.nested_depth_max == Some(0)),
        ];
        match zeros.into_iter().find(|(_, is_zero)| *is_zero) {
            Some((name, _)) => Err(Error::new(
                ErrorKind::Configuration,
                Phase::Registry,
                format!("the limit `{name}` must not be zero"),
            )
            .with_suggestion("omit it for the default, or set a positive limit")),
            None => Ok(()),
        }
    }
}

/// Computes the limits of a call. Each limit is the minimum of the operator's limit, the limit in `request`, which a package or a
/// caller requests, and the limit of the process, if there is one.
///
/// If the operator does not set a limit, the default takes its place. A request can therefore lower a limit but never raise it.
#[must_use]
pub fn effective(engine: &EngineLimits, operator: &LimitOverrides, request: &LimitOverrides) -> CallLimits {
    let defaults = CallLimits::default();
    macro_rules! smallest {
        ($field:ident) => {{
            let allowed = operator.$field.unwrap_or(defaults.$field);
            request.$field.map_or(allowed, |requested| requested.min(allowed))
        }};
    }
    CallLimits {
        fuel_max: smallest!(fuel_max),
        wall_max: smallest!(wall_max).min(engine.call_wall_max),
        memory_bytes_max: smallest!(memory_bytes_max).min(engine.memory_bytes_max),
        stack_bytes_max: engine.stack_bytes_max,
        table_elements_max: defaults.table_elements_max,
        instances_max: defaults.instances_max,
        result_bytes_max: smallest!(result_bytes_max),
        log_bytes_max: smallest!(log_bytes_max),
        artifact_bytes_max: smallest!(artifact_bytes_max),
        host_calls_max: smallest!(host_calls_max),
        host_call_bytes_max: smallest!(host_call_bytes_max),
        resources_max: smallest!(resources_max),
        host_memory_bytes_max: smallest!(host_memory_bytes_max),
        http_requests_max: smallest!(http_requests_max),
        http_bytes_max: smallest!(http_bytes_max),
        nested_depth_max: smallest!(nested_depth_max).min(engine.nested_depth_max),
        nested_calls_max: smallest!(nested_calls_max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_lowers_a_limit_but_never_raises_it() {
        let engine = EngineLimits::default();
        let operator = LimitOverrides::default()
            .with_fuel_max(1_000)
            .with_wall_max(Duration::from_secs(60));
        let lowered = effective(
            &engine,
            &operator,
            &LimitOverrides::default()
                .with_fuel_max(10)
                .with_wall_max(Duration::from_secs(1)),
        );
        assert_eq!((lowered.fuel_max, lowered.wall_max), (10, Duration::from_secs(1)));
        let unchanged = effective(
            &engine,
            &operator,
            &LimitOverrides::default()
                .with_fuel_max(u64::MAX)
                .with_wall_max(Duration::MAX),
        );
        assert_eq!(
            (unchanged.fuel_max, unchanged.wall_max),
            (1_000, Duration::from_secs(60))
        );
        let default = effective(
            &engine,
            &LimitOverrides::default(),
            &LimitOverrides::default().with_fuel_max(u64::MAX),
        );
        assert_eq!(
            default,
            CallLimits::default(),
            "the default applies if the operator sets no limit"
        );
    }

    #[test]
    fn operator_cannot_exceed_the_limits_of_the_process() {
        let engine = EngineLimits::default();
        let operator = LimitOverrides::default()
            .with_memory_bytes_max(u64::MAX)
            .with_wall_max(Duration::MAX)
            .with_nested_depth_max(u32::MAX);
        let limits = effective(&engine, &operator, &LimitOverrides::default());
        assert_eq!(limits.memory_bytes_max, engine.memory_bytes_max);
        assert_eq!(limits.wall_max, engine.call_wall_max);
        assert_eq!(limits.nested_depth_max, engine.nested_depth_max);
    }

    // accept: 119
    #[test]
    fn long_running_raises_the_time_limit_and_never_lowers_it() {
        let wall = |operator: LimitOverrides| {
            let package = LimitOverrides::default().with_wall_max(Duration::from_secs(400));
            effective(&EngineLimits::default(), &operator.long_running(), &package).wall_max
        };
        assert_eq!(wall(LimitOverrides::default()), Duration::from_secs(300));
        assert_eq!(
            wall(LimitOverrides::default().with_wall_max(Duration::from_secs(1))),
            Duration::from_secs(300)
        );
        assert_eq!(
            wall(LimitOverrides::default().with_wall_max(Duration::from_secs(900))),
            Duration::from_secs(400)
        );
    }

    // attack: B16
    #[test]
    fn limits_that_must_be_positive_refuse_zero() {
        for zero in [
            LimitOverrides::default().with_fuel_max(0),
            LimitOverrides::default().with_wall_max(Duration::ZERO),
            LimitOverrides::default().with_memory_bytes_max(0),
            LimitOverrides::default().with_http_bytes_max(0),
            LimitOverrides::default().with_nested_depth_max(0),
        ] {
            assert!(zero.check().is_err(), "{zero:?}");
        }
        for valid in [
            LimitOverrides::default().with_fuel_max(u64::MAX),
            LimitOverrides::default().with_http_requests_max(0),
            LimitOverrides::default().with_nested_calls_max(0),
        ] {
            assert!(valid.check().is_ok(), "{valid:?}");
        }
    }
}
