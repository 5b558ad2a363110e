//! The reduction of requested limits to the allowed limits.

use super::call::{CallLimits, LimitOverrides};

impl LimitOverrides {
    /// Returns these limits, each reduced to at most the same limit in `allowed`. If `allowed` does not set a limit, the default
    /// of the limit takes its place. A limit that `self` does not set stays unset.
    #[must_use]
    pub fn within(&self, allowed: &Self) -> Self {
        let defaults = CallLimits::default();
        macro_rules! reduced {
            ($field:ident) => {
                self.$field
                    .map(|limit| limit.min(allowed.$field.unwrap_or(defaults.$field)))
            };
        }
        Self {
            fuel_max: reduced!(fuel_max),
            wall_max: reduced!(wall_max),
            memory_bytes_max: reduced!(memory_bytes_max),
            result_bytes_max: reduced!(result_bytes_max),
            log_bytes_max: reduced!(log_bytes_max),
            artifact_bytes_max: reduced!(artifact_bytes_max),
            host_memory_bytes_max: reduced!(host_memory_bytes_max),
            host_calls_max: reduced!(host_calls_max),
            host_call_bytes_max: reduced!(host_call_bytes_max),
            resources_max: reduced!(resources_max),
            http_requests_max: reduced!(http_requests_max),
            http_bytes_max: reduced!(http_bytes_max),
            nested_depth_max: reduced!(nested_depth_max),
            nested_calls_max: reduced!(nested_calls_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requested_limit_is_reduced_to_the_allowed_one() {
        let default = CallLimits::default().fuel_max;
        let reduced_fuel = |requested: u64, allowed: Option<u64>| {
            let allowed = LimitOverrides {
                fuel_max: allowed,
                ..LimitOverrides::default()
            };
            let reduced = LimitOverrides::default().with_fuel_max(requested).within(&allowed);
            assert_eq!(reduced.wall_max, None, "a limit that is not requested stays unset");
            reduced.fuel_max
        };
        assert_eq!(reduced_fuel(5, None), Some(5));
        assert_eq!(reduced_fuel(u64::MAX, None), Some(default));
        assert_eq!(reduced_fuel(u64::MAX, Some(default * 2)), Some(default * 2));
        assert_eq!(reduced_fuel(default + 1, Some(default * 2)), Some(default + 1));
    }
}
