//! Options that limit calls and runs.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toolwit::agent::LoopLimits;
use toolwit::limits::{ByteCount, EngineLimits, LimitOverrides, Span};
use toolwit::registry::RunSettings;

/// Options for the limits of each tool call. Each option is named after its limit.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Limits of each call")]
pub(crate) struct LimitFlags {
    /// Maximum fuel, about one unit per instruction [default: 20000000000, about 3 s of CPU time]
    #[arg(long, value_name = "N")]
    fuel: Option<u64>,
    /// Maximum wall-clock time, such as 250ms, 5s or 2m [default: 30s]
    #[arg(long, visible_alias = "timeout", value_name = "TIME")]
    wall: Option<Span>,
    /// Maximum guest memory, such as 64MiB [default: 256MiB]
    #[arg(long, visible_alias = "memory", value_name = "SIZE")]
    memory_bytes: Option<ByteCount>,
    /// Maximum size of the JSON result, such as 64KiB [default: 1MiB]
    #[arg(long, value_name = "SIZE")]
    result_bytes: Option<ByteCount>,
    /// Maximum size of guest output, after which it is cut [default: 256KiB]
    #[arg(long, value_name = "SIZE")]
    log_bytes: Option<ByteCount>,
    /// Maximum size of all artifacts [default: 16MiB]
    #[arg(long, value_name = "SIZE")]
    artifact_bytes: Option<ByteCount>,
    /// Maximum number of calls from the guest into the host [default: 10000]
    #[arg(long, value_name = "N")]
    host_calls: Option<u64>,
    /// Maximum size that one call into the host copies [default: 16MiB]
    #[arg(long, value_name = "SIZE")]
    host_call_bytes: Option<ByteCount>,
    /// Maximum number of open resources, such as files and streams [default: 4096]
    #[arg(long, value_name = "N")]
    resources: Option<usize>,
    /// Maximum host memory that open resources hold, such as 16MiB [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    host_memory_bytes: Option<ByteCount>,
    /// Maximum number of HTTP requests [default: 20]
    #[arg(long, value_name = "N")]
    http_requests: Option<u32>,
    /// Maximum size of all HTTP requests and responses, such as 1MiB [default: 16MiB]
    #[arg(long, value_name = "SIZE")]
    http_bytes: Option<ByteCount>,
    /// Maximum nesting depth of tool calls, including the first [default: 4] [at most: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    #[serde(deserialize_with = "deserialize_in_range::<_, _, 1, 16>")]
    nested_depth: Option<u32>,
    /// Maximum number of nested tool calls [default: 32]
    #[arg(long, value_name = "N")]
    nested_calls: Option<u32>,
    /// Maximum number of live calls of a plugin, including those that wait [default: 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(deserialize_with = "deserialize_in_range::<_, _, 1, { u32::MAX as u64 }>")]
    calls_per_plugin: Option<u32>,
    /// Maximum number of guests that compute at the same time [default: number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(deserialize_with = "deserialize_in_range::<_, _, 1, { u32::MAX as u64 }>")]
    computing_calls: Option<u32>,
    /// Maximum memory of the guests of all calls that run [default: 4GiB]
    #[arg(long, value_name = "SIZE")]
    guest_memory_bytes: Option<ByteCount>,
    /// Id of a tool whose calls may take 300s; can be repeated
    #[arg(long, value_name = "ID")]
    long_running: Vec<String>,
}

impl LimitFlags {
    /// Returns the limits that the options set. For a limit without an option, returns the limit of the project. A
    /// limit that neither sets stays unset, so that its default applies.
    pub(crate) fn overrides(&self, project: &LimitOverrides) -> LimitOverrides {
        let bytes = |size: Option<ByteCount>| size.map(|ByteCount(bytes)| bytes);
        let overrides = LimitOverrides {
            fuel_max: self.fuel,
            wall_max: self.wall.map(|Span(time)| time),
            memory_bytes_max: bytes(self.memory_bytes),
            result_bytes_max: bytes(self.result_bytes),
            log_bytes_max: bytes(self.log_bytes).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
            artifact_bytes_max: bytes(self.artifact_bytes),
            host_calls_max: self.host_calls,
            host_call_bytes_max: bytes(self.host_call_bytes),
            resources_max: self.resources,
            host_memory_bytes_max: bytes(self.host_memory_bytes),
            http_requests_max: self.http_requests,
            http_bytes_max: bytes(self.http_bytes),
            nested_depth_max: self.nested_depth,
            nested_calls_max: self.nested_calls,
        };
        overrides.or(project)
    }

    /// Returns the limits of the process. A limit without an option has its default.
    pub(crate) fn engine_limits(&self) -> EngineLimits {
        let defaults = EngineLimits::default();
        let count = |option: Option<u32>, default| option.map_or(default, |count| count as usize);
        EngineLimits {
            calls_per_plugin_max: count(self.calls_per_plugin, defaults.calls_per_plugin_max),
            computing_calls_max: count(self.computing_calls, defaults.computing_calls_max),
            guest_memory_bytes_max: self
                .guest_memory_bytes
                .map_or(defaults.guest_memory_bytes_max, |ByteCount(bytes)| bytes),
            ..defaults
        }
    }

    /// Returns the ids of the long-running tools that the options name.
    pub(crate) fn long_running(&self) -> impl Iterator<Item = &str> {
        self.long_running.iter().map(String::as_str)
    }
}

/// Options for the limits of a run.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Limits of the run")]
pub(crate) struct RunLimitFlags {
    /// Maximum number of model calls [default: 20]
    #[arg(long, visible_alias = "max-iterations", value_name = "N")]
    iterations: Option<u32>,
    /// Maximum number of tool calls [default: 100]
    #[arg(long, value_name = "N")]
    calls: Option<u32>,
    /// Maximum number of input and output tokens [default: unlimited]
    #[arg(long, value_name = "N")]
    tokens: Option<u64>,
    /// Size of a request, in estimated tokens, beyond which older messages are summarized [default: three quarters of
    /// the context of a known model]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    #[serde(deserialize_with = "deserialize_in_range::<_, _, 1000, { u64::MAX }>")]
    context_tokens: Option<u64>,
    /// Maximum wall-clock time, such as 2m [default: 600s]
    #[arg(long, value_name = "TIME")]
    run_wall: Option<Span>,
}

impl RunLimitFlags {
    /// Returns the limits of a run. The options take precedence over the settings of the project.
    pub(crate) fn limits(&self, project: &RunSettings) -> LoopLimits {
        let defaults = LoopLimits::default();
        self.override_limits(LoopLimits {
            iterations_max: project.iterations.unwrap_or(defaults.iterations_max),
            calls_max: project.calls.unwrap_or(defaults.calls_max),
            tokens_max: project.tokens,
            context_tokens_max: project.context_tokens,
            wall_ms_max: project.wall().map_or(defaults.wall_ms_max, millis),
            ..defaults
        })
    }

    /// Replaces the limits for which an option is set. `limits` are the limits of the project or of a trace.
    pub(crate) fn override_limits(&self, limits: LoopLimits) -> LoopLimits {
        LoopLimits {
            iterations_max: self.iterations.unwrap_or(limits.iterations_max),
            calls_max: self.calls.unwrap_or(limits.calls_max),
            tokens_max: self.tokens.or(limits.tokens_max),
            context_tokens_max: self.context_tokens.or(limits.context_tokens_max),
            wall_ms_max: self.run_wall.map_or(limits.wall_ms_max, |Span(time)| millis(time)),
            ..limits
        }
    }
}

/// Deserializes the number of a stored option, and checks that the number is in the range of the option.
pub(super) fn deserialize_in_range<'de, D, N, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Result<Option<N>, D::Error>
where
    D: Deserializer<'de>,
    N: Deserialize<'de> + Into<u64> + Copy,
{
    let number = Option::<N>::deserialize(deserializer)?;
    match number.map(N::into) {
        Some(value) if !(MIN..=MAX).contains(&value) => Err(D::Error::custom(format_args!(
            "{value} is not in the range of the option"
        ))),
        _ => Ok(number),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)]
mod tests {
    use clap::{Args, Command};
    use toolwit::limits::{Amount, all_limits};
    use toolwit::registry::ProjectLimits;

    use super::*;

    /// Returns the help of an option.
    fn help<T: Args>(flag: &str) -> Option<String> {
        let command = T::augment_args(Command::new("test"));
        let argument = command
            .get_arguments()
            .find(|argument| argument.get_long() == Some(flag))?;
        Some(argument.get_help()?.to_string())
    }

    #[test]
    fn each_limit_that_an_operator_sets_has_an_option_with_its_default() {
        let limits = all_limits();
        for (limit, flag) in limits.iter().filter_map(|limit| Some((limit, limit.flag()?))) {
            let name = flag.trim_start_matches("--");
            let help = help::<LimitFlags>(name).or_else(|| help::<RunLimitFlags>(name));
            let help = help.unwrap_or_else(|| panic!("{flag} does not exist"));
            let default = match limit.default {
                Amount::Count(count) => count.to_string(),
                Amount::Processors => limit.default.to_string(),
                amount => amount.to_string().replace(' ', ""),
            };
            let expected_texts = [format!("[default: {default}]"), format!("[default: {default},")];
            assert!(
                expected_texts.iter().any(|text| help.contains(text)),
                "the help of {flag} has another default than {default}: {help}"
            );
        }
        assert_eq!(limits.iter().filter(|limit| limit.flag().is_some()).count(), 21);
    }

    #[test]
    fn options_take_precedence_over_the_project() {
        let file = "[limits]\nhost_calls = 5\nfuel = 6\n[run]\niterations = 7\ncalls = 8\n";
        let project: ProjectLimits = toml::from_str(file).unwrap();
        let no_accepted_limits = ProjectLimits::default();
        let flags = LimitFlags {
            fuel: Some(1),
            ..LimitFlags::default()
        };
        let overrides = flags.overrides(&project.of_calls(&no_accepted_limits));
        assert_eq!(
            (overrides.fuel_max, overrides.host_calls_max, overrides.wall_max),
            (Some(1), Some(5), None)
        );
        let flags = RunLimitFlags {
            calls: Some(2),
            ..RunLimitFlags::default()
        };
        let recorded = LoopLimits {
            calls_max: 50,
            context_tokens_max: Some(5000),
            ..LoopLimits::default()
        };
        let replayed = flags.override_limits(recorded);
        assert_eq!((replayed.calls_max, replayed.context_tokens_max), (2, Some(5000)));
        let limits = flags.limits(&project.of_runs(&no_accepted_limits));
        assert_eq!((limits.iterations_max, limits.calls_max), (7, 2));
    }
}
