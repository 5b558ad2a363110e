//! Behaviour around the calls of a tool.

#[allow(clippy::module_inception, reason = "the module is named after its main type")]
mod decorator;
mod entity_results;
mod loop_memory;
mod one_shot;

pub use decorator::{DecoratedTool, Decorator, Timeout, ToolExt};
pub use entity_results::EntityResults;
pub use loop_memory::LoopMemory;
pub use one_shot::OneShot;

#[cfg(test)]
mod tests;
