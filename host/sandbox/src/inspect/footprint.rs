//! The core instances, memories and tables that an instance of a component allocates before its first instruction.

use toolwit_core::limits::{ByteCount, COMPONENT_DEPTH_MAX, CallLimits, INSTANTIATION_STEPS_MAX};
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};

/// The number of core instances in one slot of the engine's instance pool. Components that large toolchains build have about ten.
pub(crate) const CORE_INSTANCES_PER_SLOT: u32 = 16;

/// The number of tables in one slot of the engine's instance pool.
pub(crate) const TABLES_PER_SLOT: u32 = 4;

/// The core instances, memories and tables that one instance of a component allocates before it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Footprint {
    /// The number of core instances.
    pub(crate) instances: u64,
    /// The number of linear memories.
    pub(crate) memories: u64,
    /// The number of tables.
    pub(crate) tables: u64,
    /// The initial size of all memories, in bytes.
    pub(crate) memory_bytes: u64,
    /// The initial size of all tables, in elements.
    pub(crate) table_elements: u64,
    /// Whether counting stopped at the limit of steps or of nesting depth, so that the counts may be too low.
    pub(crate) is_incomplete: bool,
    /// Whether counting stopped at the limit of nesting depth.
    #[serde(default)]
    pub(crate) is_too_deep: bool,
}

impl Footprint {
    /// Refuses a component that cannot be instantiated within the limits. `memory_bytes_max` limits the total size of its memories.
    ///
    /// # Errors
    /// [`ErrorKind::Instances`], [`ErrorKind::Memory`] or [`ErrorKind::TableElements`].
    pub(crate) fn require_within(&self, limits: &CallLimits, memory_bytes_max: u64) -> Result<(), Error> {
        let count_max = limits.instances_max as u64;
        let counts = [
            ("core instances", self.instances),
            ("memories", self.memories),
            ("tables", self.tables),
        ];
        let prefix = if self.is_incomplete { "more than " } else { "" };
        if let Some((item, count)) = counts.into_iter().find(|(_, count)| *count > count_max) {
            let message = format!("each of its instances needs {prefix}{count} {item} and may have {count_max}");
            return Err(too_large(
                ErrorKind::Instances,
                message,
                "instances_max",
                count_max,
                count,
            ));
        }
        if self.is_incomplete {
            return Err(self.incomplete_error());
        }
        if self.memory_bytes > memory_bytes_max {
            let message = format!(
                "each of its instances starts with {} of memory and may have {}",
                ByteCount(self.memory_bytes),
                ByteCount(memory_bytes_max)
            );
            let (max, used) = (memory_bytes_max, self.memory_bytes);
            return Err(too_large(ErrorKind::Memory, message, "memory_bytes_max", max, used));
        }
        let (max, used) = (limits.table_elements_max, self.table_elements);
        if used > max {
            let message = format!("each of its instances starts with {used} table elements and may have {max}");
            return Err(too_large(
                ErrorKind::TableElements,
                message,
                "table_elements_max",
                max,
                used,
            ));
        }
        Ok(())
    }

    /// Returns the error for a component whose counting stopped at a limit.
    fn incomplete_error(&self) -> Error {
        let (message, limit, max) = if self.is_too_deep {
            let message = format!("its instantiation nests components deeper than {COMPONENT_DEPTH_MAX}");
            (message, "COMPONENT_DEPTH_MAX", COMPONENT_DEPTH_MAX as u64)
        } else {
            let message = format!("its instantiation exceeds {INSTANTIATION_STEPS_MAX} steps");
            (message, "INSTANTIATION_STEPS_MAX", INSTANTIATION_STEPS_MAX as u64)
        };
        too_large(ErrorKind::Instances, message, limit, max, max.saturating_add(1))
    }

    /// Returns the number of slots of the engine's instance pool that an instance occupies. Each slot has one memory.
    pub(crate) fn slots(&self) -> u64 {
        let instances = self.instances.div_ceil(CORE_INSTANCES_PER_SLOT.into());
        let tables = self.tables.div_ceil(TABLES_PER_SLOT.into());
        instances.max(self.memories).max(tables).max(1)
    }

    /// Adds an instance of a core module with this footprint.
    pub(crate) fn add(&mut self, module: &Self) {
        let add_to = |total: &mut u64, addend: u64| *total = total.saturating_add(addend);
        add_to(&mut self.instances, 1);
        add_to(&mut self.memories, module.memories);
        add_to(&mut self.tables, module.tables);
        add_to(&mut self.memory_bytes, module.memory_bytes);
        add_to(&mut self.table_elements, module.table_elements);
    }
}

fn too_large(kind: ErrorKind, message: String, limit: &'static str, max: u64, used: u64) -> Error {
    Error::new(kind, Phase::Load, message).with_limit(ExceededLimit::new(limit, max, used))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_an_incomplete_count_names_the_limit_at_which_counting_stopped() {
        for (is_too_deep, limit, max) in [
            (true, "COMPONENT_DEPTH_MAX", COMPONENT_DEPTH_MAX as u64),
            (false, "INSTANTIATION_STEPS_MAX", INSTANTIATION_STEPS_MAX as u64),
        ] {
            let footprint = Footprint {
                instances: 3,
                is_incomplete: true,
                is_too_deep,
                ..Footprint::default()
            };
            let error = footprint.require_within(&CallLimits::default(), u64::MAX).unwrap_err();
            let exceeded = error.limit.as_ref().unwrap();
            assert_eq!((exceeded.limit, exceeded.max), (limit, max));
            assert!(exceeded.used > exceeded.max);
            assert!(error.message.contains(&max.to_string()), "{error}");
        }
    }

    #[test]
    fn a_cached_footprint_without_the_field_is_too_deep_is_read() {
        let text =
            r#"{"instances":1,"memories":0,"tables":0,"memory_bytes":0,"table_elements":0,"is_incomplete":true}"#;
        let footprint: Footprint = serde_json::from_str(text).unwrap();
        assert!(footprint.is_incomplete && !footprint.is_too_deep);
    }
}
