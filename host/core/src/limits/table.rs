//! The table of all limits that the host enforces.

use std::fmt;

use super::amount::{Amount, IntoAmount};
use super::constants;
use super::{CallLimits, EngineLimits};

/// A limit that the host enforces.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// The name in the API and in errors: a field such as `fuel_max`, or a constant such as `WIT_BYTES_MAX`.
    pub name: &'static str,
    /// The part of the host that the limit belongs to.
    pub group: LimitGroup,
    /// The quantity that is limited, such as `size of the grants file`.
    pub subject: &'static str,
    /// The default of the limit.
    pub default: Amount,
    /// The way to set the limit.
    pub setting: LimitSetting,
}

/// The part of the host that a limit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LimitGroup {
    /// One call; see [`CallLimits`].
    Calls,
    /// The process; see [`EngineLimits`].
    Process,
    /// The interfaces of the host that a component can import.
    HostInterfaces,
    /// The inspection and compilation of a component.
    Components,
    /// Tools that a component lists at run time, and the schemas of tools from components and MCP servers.
    DynamicTools,
    /// The Model Context Protocol (MCP): servers whose tools a conversation uses, and clients of the host's own server.
    McpServers,
    /// Files that the host reads or downloads, and the cache of compiled code.
    Files,
    /// A conversation.
    Conversations,
    /// One run of the agent loop.
    Runs,
}

/// The way to set a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSetting {
    /// The limit cannot be set: it has the same value in every process.
    Fixed,
    /// By [`LimitOverrides`](super::LimitOverrides), which come from an option of the operator, `toolwit.toml` or a manifest.
    Overrides,
    /// By a field of [`EngineLimits`].
    Engine,
    /// By the options, settings, functions or fields that the text names in backticks.
    Named(&'static str),
}

impl Limit {
    /// Returns the key of the limit in a manifest and in `toolwit.toml`, or `None` if they cannot set it.
    #[must_use]
    pub fn key(&self) -> Option<&'static str> {
        (self.setting == LimitSetting::Overrides).then(|| self.name.trim_end_matches("_max"))
    }

    /// Returns the command-line option that sets the limit, or `None` if there is no such option.
    #[must_use]
    pub fn flag(&self) -> Option<String> {
        match self.setting {
            LimitSetting::Overrides => self.key().map(|key| format!("--{}", key.replace('_', "-"))),
            LimitSetting::Named(names) => names.split('`').find(|part| part.starts_with("--")).map(str::to_owned),
            LimitSetting::Fixed | LimitSetting::Engine => None,
        }
    }
}

/// Returns all limits, in the order of their groups.
#[must_use]
pub fn all_limits() -> Vec<Limit> {
    let mut limits = call_limits();
    limits.extend(engine_limits());
    limits.extend(constants::rows());
    limits.push(Limit {
        name: "tokens_max",
        group: LimitGroup::Runs,
        subject: "number of input and output tokens of a run",
        default: Amount::Unlimited,
        setting: LimitSetting::Named("`--tokens`, `LoopLimits::tokens_max`"),
    });
    limits.sort_by_key(|limit| limit.group);
    limits
}

/// Returns the rows of a struct of limits. Each field must have a row, or be listed after `without`. A row has the subject of the
/// limit, its unit, a variant of [`Amount`], and its setting, a variant of [`LimitSetting`].
macro_rules! rows {
    ($group:ident, $limits:ident {
        $($name:ident: $subject:literal, $unit:ident, $setting:ident;)*
    } without $($left_out:ident),*) => {{
        let $limits { $($name,)* $($left_out: _,)* } = $limits::default();
        vec![$(Limit {
            name: stringify!($name),
            group: LimitGroup::$group,
            subject: $subject,
            default: Amount::$unit($name.into_amount()),
            setting: LimitSetting::$setting,
        },)*]
    }};
}

fn call_limits() -> Vec<Limit> {
    // The stack is left out, because its limit is a row of the process.
    rows!(Calls, CallLimits {
        fuel_max: "fuel, about one unit per instruction", Count, Overrides;
        wall_max: "wall-clock time", Time, Overrides;
        memory_bytes_max: "memory of all linear memories", Bytes, Overrides;
        table_elements_max: "elements of all tables", Count, Fixed;
        instances_max: "core instances, memories and tables, each", Count, Fixed;
        result_bytes_max: "size of the result as JSON", Bytes, Overrides;
        log_bytes_max: "size of standard output, standard error and log", Bytes, Overrides;
        artifact_bytes_max: "size of all artifacts as JSON", Bytes, Overrides;
        host_calls_max: "calls from the guest into the host", Count, Overrides;
        host_call_bytes_max: "bytes that one host call copies out of the guest", Bytes, Overrides;
        resources_max: "live host resources and component handles", Count, Overrides;
        host_memory_bytes_max: "memory of the host that live resources hold", Bytes, Overrides;
        http_requests_max: "HTTP requests, with those of nested calls", Count, Overrides;
        http_bytes_max: "bytes of HTTP requests and responses, with those of nested calls", Bytes, Overrides;
        nested_depth_max: "depth of nested calls, the outermost call included", Count, Overrides;
        nested_calls_max: "nested calls, with those that nested calls make", Count, Overrides;
    } without stack_bytes_max)
}

fn engine_limits() -> Vec<Limit> {
    let mut limits = rows!(Process, EngineLimits {
        memory_bytes_max: "memory of an instance that an operator can allow", Bytes, Engine;
        call_wall_max: "wall-clock time of a call that an operator can allow", Time, Engine;
        nested_depth_max: "depth of nested calls that an operator can allow", Count, Engine;
        stack_bytes_max: "stack of WebAssembly code", Bytes, Engine;
        instances_max: "live instances of all plugins", Count, Engine;
        component_bytes_max: "size of a component file", Bytes, Engine;
        load_wall_max: "time that a call waits for the compilation of a component", Time, Engine;
        compile_wall_max: "time of the compilation of a component in a compiler process", Time, Engine;
        compile_memory_bytes_max: "memory of a compiler process", Bytes, Engine;
        code_bytes_max: "size of the machine code that a compiler process returns for a component", Bytes, Engine;
        sessions_per_conversation_max: "session instances of a conversation", Count, Engine;
        sessions_max: "session instances of the process", Count, Engine;
        guest_files_max: "files and connections that guests have open", Count, Engine;
    } without calls_per_plugin_max, computing_calls_max, guest_memory_bytes_max);
    let defaults = EngineLimits::default();
    let row = |name, subject, default, setting| Limit {
        name,
        group: LimitGroup::Process,
        subject,
        default,
        setting: LimitSetting::Named(setting),
    };
    limits.push(row(
        "calls_per_plugin_max",
        "live calls of a plugin, including those that wait",
        Amount::Count(defaults.calls_per_plugin_max as u64),
        "`--calls-per-plugin`, `EngineLimits`",
    ));
    // The default depends on the machine, so the row does not contain it as a number.
    limits.push(row(
        "computing_calls_max",
        "guests that compute at the same time",
        Amount::Processors,
        "`--computing-calls`, `EngineLimits`",
    ));
    limits.push(row(
        "guest_memory_bytes_max",
        "memory of the instances of all calls that run",
        Amount::Bytes(defaults.guest_memory_bytes_max),
        "`--guest-memory-bytes`, `EngineLimits`",
    ));
    limits
}

impl fmt::Display for LimitGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Calls => "Calls",
            Self::Process => "The process",
            Self::HostInterfaces => "Host interfaces",
            Self::Components => "Components",
            Self::DynamicTools => "Dynamic tools",
            Self::McpServers => "MCP servers",
            Self::Files => "Files",
            Self::Conversations => "Conversations",
            Self::Runs => "Runs",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_limit_has_a_unique_name_a_subject_and_a_positive_default() {
        let limits = all_limits();
        let names: BTreeSet<_> = limits.iter().map(|limit| (limit.group, limit.name)).collect();
        assert_eq!(names.len(), limits.len(), "no name is used twice in a group");
        for limit in limits {
            assert!(!limit.subject.is_empty(), "{limit:?}");
            assert!(
                !["0", "0 bytes", "0 s"].contains(&limit.default.to_string().as_str()),
                "{limit:?}"
            );
        }
    }

    #[test]
    fn a_limit_lists_the_option_and_the_key_that_set_it() {
        let limits = all_limits();
        let find_with_flag = |name: &str| limits.iter().find(|limit| limit.name == name && limit.flag().is_some());
        assert_eq!(
            find_with_flag("host_calls_max").and_then(Limit::flag).as_deref(),
            Some("--host-calls")
        );
        assert_eq!(
            find_with_flag("host_calls_max").and_then(Limit::key),
            Some("host_calls")
        );
        assert_eq!(
            find_with_flag("ITERATIONS_MAX").and_then(Limit::flag).as_deref(),
            Some("--iterations")
        );
        assert!(
            find_with_flag("component_bytes_max").is_none(),
            "a limit of the process has no option"
        );
    }
}
