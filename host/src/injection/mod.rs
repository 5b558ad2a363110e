//! Which tools the model sees next.
//!
//! After every tool result, in call order, the loop asks an [`InjectionStrategy`] what to add and what to remove. A strategy
//! decides and the loop applies: names, limits and events are the loop's. [`EntityTools`] is on by default: it brings in the
//! methods of objects that a result holds. Several strategies form a [`Chain`].

mod chain;
mod change;
mod context;
mod entities;
mod entity_tools;
mod registry_tools;
mod strategy;
mod tool_search;
mod turn;

pub use chain::Chain;
pub use change::{Discovery, Injection, RejectedProvider};
pub use context::{CompletedCall, InjectionContext};
pub use entities::{Binding, Entities, EntityKey};
pub use entity_tools::{ENTITY_DEPTH_MAX, ENTITY_ID_BYTES_MAX, EntityTools};
pub use registry_tools::RegistryTools;
pub use strategy::{InjectionStrategy, NoInjection};
pub use tool_search::{SEARCH_TOOLS, SEARCH_WALL_MAX, TOOL_GUIDANCE, ToolSearch};
pub use turn::TurnContext;
