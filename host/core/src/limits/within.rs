//! The reduction of proposed limits to the allowed limits.

use super::call::{CallLimits, LimitOverrides};

impl LimitOverrides {
    /// Returns these limits, each reduced to at most the limit in `allowed`. If `allowed` does not set a limit, its default is
    /// the maximum. Limits that are not set remain unset.
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
    fn a_proposed_limit_is_reduced_to_the_allowed_one() {
        let default = CallLimits::default().fuel_max;
        let fuel = |proposed: u64, allowed: Option<u64>| {
            let allowed = LimitOverrides {
                fuel_max: allowed,
                ..LimitOverrides::default()
            };
            let within = LimitOverrides::default().with_fuel_max(proposed).within(&allowed);
            assert_eq!(within.wall_max, None, "a limit that is not proposed stays unset");
            within.fuel_max
        };
        assert_eq!(fuel(5, None), Some(5));
        assert_eq!(fuel(u64::MAX, None), Some(default));
        assert_eq!(fuel(u64::MAX, Some(default * 2)), Some(default * 2));
        assert_eq!(fuel(default + 1, Some(default * 2)), Some(default + 1));
    }
}
