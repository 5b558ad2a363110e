//! The limits that an operator can meet, each with its default and the reason for it.
//!
//! [`all_limits`] is the table of them. [`EngineLimits`] are ceilings of the process. [`CallLimits`] belong to one call.
//! [`effective`] computes them: the minimum of the ceiling, the operator's limit and the requested limit. The constants are
//! limits with one value for the process; other crates enforce them.

mod amount;
mod call;
mod constants;
mod engine;
mod table;
mod unit;

pub use amount::Amount;
pub use call::{CallLimits, LONG_RUNNING_WALL, LimitRequest, effective};
pub use constants::{
    AGENT_DEPTH_MAX, ARGUMENT_BYTES_MAX, ARTIFACT_WEIGHT_MAX, BACKGROUND_TASKS_MAX, BETWEEN_BYTES_WALL_MAX,
    BLACKBOARD_BYTES_MAX, BLACKBOARD_ENTRIES_MAX, CALLS_MAX, CALLS_PER_RESPONSE_MAX, CODE_CACHE_BYTES_MAX,
    COMPONENT_DEPTH_MAX, COMPONENT_PARTS_MAX, COMPONENT_WORK_MAX, CONNECT_WALL_MAX, DECLARED_TOOLS_MAX,
    DESCRIPTION_CHARS_MAX, DIRECTORY_BYTES_MAX, DIRECTORY_ENTRIES_MAX, DISCOVERY_WALL_MAX, DYNAMIC_TOOLS_MAX,
    ENTITIES_PER_RESULT_MAX, ENTITY_DEPTH_MAX, ENTITY_ID_BYTES_MAX, FACADE_DEPTH_MAX, FIRST_BYTE_WALL_MAX,
    FUNCTION_DOCS_CHARS_MAX, FUNCTION_PARTS_MAX, FUNCTION_WORK_MAX, FUNCTIONS_MAX, GRANTS_BYTES_MAX,
    GUEST_PATH_BYTES_MAX, HEADER_BYTES_MAX, INSTANTIATION_STEPS_MAX, ITERATIONS_MAX, KEY_BYTES_MAX, MANIFEST_BYTES_MAX,
    NAME_BYTES_MAX, OUTPUT_BYTES_MAX, PROJECT_BYTES_MAX, PROMPT_BYTES_MAX, RANDOM_BYTES_MAX, REQUEST_WALL_MAX,
    RUN_WALL_MAX, SCENARIO_BYTES_MAX, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_PARTS_MAX, SCHEMA_PARTS_SUM_MAX,
    SCHEMA_PATTERN_BYTES_MAX, SCHEMA_PATTERN_BYTES_SUM_MAX, SCHEMA_PATTERNS_MAX, SCRIPT_BYTES_MAX, SEARCH_WALL_MAX,
    SECRET_BYTES_MAX, SECRETS_BYTES_MAX, SHOWN_RESULT_BYTES_MAX, TOOLS_VISIBLE_MAX, TYPE_DEPTH_MAX,
    VALIDATION_STEPS_MAX, WIT_BYTES_MAX,
};
pub use engine::EngineLimits;
pub use table::{Limit, LimitGroup, LimitSetting, all_limits};
pub use unit::{ByteCount, Span, UnitError};
