//! The limits that a project sets, and the conditions under which they apply.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::manifest::{LimitSettings, amounts};
use toolwit_core::limits::{CALLS_MAX, ITERATIONS_MAX, LimitOverrides, RUN_WALL_MAX};

/// The limits that a project sets.
///
/// The author of a project is not trusted. Limits below the defaults apply. Limits above the defaults and long-running
/// tools are [proposals](ProjectLimits::raised), which apply only after the user has accepted them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ProjectLimits {
    /// Limits of each call.
    pub limits: LimitSettings,
    /// Limits of each run.
    pub run: RunSettings,
    /// Tools whose calls may take longer than others.
    pub tools: LongRunningTools,
}

/// The tools whose calls may take up to [`LONG_RUNNING_WALL`](toolwit_core::limits::LONG_RUNNING_WALL).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LongRunningTools {
    /// The ids of the tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub long_running: Vec<String>,
}

/// Limits of a run of the agent loop, with units.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RunSettings {
    /// The number of inferences.
    pub iterations: Option<u32>,
    /// The number of tool calls.
    pub calls: Option<u32>,
    /// The sum of input and output tokens.
    pub tokens: Option<u64>,
    /// The estimated number of tokens of a request above which older messages are summarized.
    pub context_tokens: Option<u64>,
    /// The duration, such as `2m`.
    #[serde(deserialize_with = "amounts::deserialize_duration")]
    wall: Option<String>,
}

impl RunSettings {
    /// Returns the duration, if it is set.
    #[must_use]
    pub fn wall(&self) -> Option<Duration> {
        self.wall.as_deref().and_then(amounts::parse_duration)
    }

    /// Returns the settings with each limit reduced to the limit in `allowed`, or to the default if `allowed` does not set
    /// the limit. Lower limits are unchanged. The numbers of tokens are unchanged too, because they have no fixed default.
    ///
    /// A duration that is reduced to the default becomes `None`.
    fn within(&self, allowed: &Self) -> Self {
        let wall_max = allowed.wall().unwrap_or(RUN_WALL_MAX);
        let is_within = self.wall().is_none_or(|wall| wall <= wall_max);
        Self {
            iterations: self
                .iterations
                .map(|limit| limit.min(allowed.iterations.unwrap_or(ITERATIONS_MAX))),
            calls: self.calls.map(|limit| limit.min(allowed.calls.unwrap_or(CALLS_MAX))),
            tokens: self.tokens,
            context_tokens: self.context_tokens,
            wall: if is_within { &self.wall } else { &allowed.wall }.clone(),
        }
    }
}

impl ProjectLimits {
    /// Returns the limits that are higher than the defaults, and all long-running tools.
    #[must_use]
    pub fn raised(&self) -> Self {
        let defaults = Self::default();
        Self {
            limits: settings_with(&self.limits, |setting: &LimitSettings| {
                setting.overrides().within(&defaults.limits.overrides()) != setting.overrides()
            }),
            run: settings_with(&self.run, |setting: &RunSettings| {
                setting.within(&defaults.run) != *setting
            }),
            tools: self.tools.clone(),
        }
    }

    /// Returns whether no limit is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the limits that apply to each call. A limit above the default applies only up to the accepted limit.
    #[must_use]
    pub fn of_calls(&self, accepted: &Self) -> LimitOverrides {
        self.limits.overrides().within(&accepted.limits.overrides())
    }

    /// Returns the limits that apply to each run. A limit above the default applies only up to the accepted limit.
    #[must_use]
    pub fn of_runs(&self, accepted: &Self) -> RunSettings {
        self.run.within(&accepted.run)
    }

    /// Returns the ids of the long-running tools that the user has accepted.
    pub fn long_running<'a>(&'a self, accepted: &'a Self) -> impl Iterator<Item = &'a str> {
        let is_accepted = |id: &&String| accepted.tools.long_running.contains(id);
        self.tools.long_running.iter().filter(is_accepted).map(String::as_str)
    }

    /// Describes each limit as in the file, such as `limits.wall = "2m"`.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let table = Table::try_from(self).unwrap_or_default();
        let sections = table
            .iter()
            .filter_map(|(name, section)| Some((name, section.as_table()?)));
        let lines = sections.flat_map(|(name, section)| section.iter().map(move |(key, value)| (name, key, value)));
        lines
            .map(|(name, key, value)| format!("{name}.{key} = {value}"))
            .collect()
    }
}

/// Returns only the settings that have a property. The property is tested for each setting separately, with all others
/// unset.
fn settings_with<T>(settings: &T, has_property: impl Fn(&T) -> bool) -> T
where
    T: Default + Serialize + DeserializeOwned,
{
    let has_property = |(key, value): &(String, Value)| {
        let setting: Result<T, _> = Table::from_iter([(key.clone(), value.clone())]).try_into();
        setting.is_ok_and(|setting| has_property(&setting))
    };
    // Settings that were read from TOML can be written as TOML.
    let table = Table::try_from(settings).unwrap_or_default();
    let selected: Table = table.into_iter().filter(has_property).collect();
    selected.try_into().unwrap_or_default()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn limits(text: &str) -> ProjectLimits {
        toml::from_str(text).unwrap()
    }

    // attack: J8
    #[test]
    fn only_limits_below_the_defaults_apply_without_acceptance() {
        let project = limits(
            "[limits]\nfuel = 5\nwall = \"1h\"\nmemory = \"1GiB\"\nnested_calls = 33\n\
             [run]\niterations = 1_000\ncalls = 3\ntokens = 9\nwall = \"20m\"\n",
        );
        let no_acceptance = ProjectLimits::default();
        let calls = project.of_calls(&no_acceptance);
        assert_eq!((calls.fuel_max, calls.nested_calls_max), (Some(5), Some(32)));
        assert_eq!(
            (calls.wall_max, calls.memory_bytes_max),
            (Some(Duration::from_secs(30)), Some(256 << 20))
        );
        let run = project.of_runs(&no_acceptance);
        assert_eq!((run.iterations, run.calls, run.tokens), (Some(20), Some(3), Some(9)));
        assert_eq!(run.wall(), None, "`None` stands for the default");

        let raised = project.raised();
        assert_eq!(
            raised.describe(),
            [
                "limits.memory_bytes = \"1GiB\"",
                "limits.nested_calls = 33",
                "limits.wall = \"1h\"",
                "run.iterations = 1000",
                "run.wall = \"20m\"",
            ]
        );
        let calls = project.of_calls(&raised);
        assert_eq!(
            (calls.fuel_max, calls.wall_max),
            (Some(5), Some(Duration::from_secs(3_600)))
        );
        assert_eq!(project.of_runs(&raised), project.run);
        assert_eq!(
            toml::from_str::<ProjectLimits>(&toml::to_string(&raised).unwrap()).unwrap(),
            raised
        );
    }

    // attack: J8
    #[test]
    fn long_running_tools_apply_after_acceptance() {
        let project = limits("[tools]\nlong_running = [\"render#frames\", \"crawl#site\"]\n");
        assert_eq!(project.long_running(&ProjectLimits::default()).count(), 0);
        assert_eq!(
            project.raised().describe(),
            ["tools.long_running = [\"render#frames\", \"crawl#site\"]"]
        );
        let accepted = limits("[tools]\nlong_running = [\"crawl#site\", \"other#tool\"]\n");
        assert_eq!(project.long_running(&accepted).collect::<Vec<_>>(), ["crawl#site"]);
    }

    #[test]
    fn accepted_limit_does_not_allow_a_higher_one() {
        let accepted = limits("[limits]\nhost_calls = 20_000\n[run]\ncalls = 200\nwall = \"11m\"\n");
        let project = limits("[limits]\nhost_calls = 30_000\n[run]\ncalls = 300\nwall = \"12m\"\n");
        assert_eq!(project.of_calls(&accepted).host_calls_max, Some(20_000));
        let run = project.of_runs(&accepted);
        assert_eq!((run.calls, run.wall()), (Some(200), Some(Duration::from_secs(660))));
        assert!(
            limits("[limits]\nhost_calls = 10_000\n[run]\nwall = \"10m\"\n")
                .raised()
                .is_empty()
        );
    }
}
