//! Which tools the model sees next, and which of them it may call.
//!
//! After every tool result, in call order, the loop asks an [`InjectionStrategy`] what to add and what to remove; before every
//! call it asks whether the tool may be called now. A strategy decides and the loop applies: names, limits and events are the
//! loop's. All that a strategy knows is a [`ConversationView`], which follows from the conversation's events, so the same conversation
//! always ends in the same tools.
//!
//! [`Unfolding`] and [`EntityTools`] are on by default: they bring in the tools behind a [`Facade`], and the methods of objects
//! that a result holds. [`Chaining`] shows such methods another way. [`Playbook`] and [`StateMachine`] lock tools. Several strategies form a [`StrategyChain`].

mod calls;
mod chain;
mod chaining;
mod change;
mod context;
mod current;
mod entities;
mod entity_tools;
mod facade;
mod gate;
mod lineage;
mod playbook;
mod rebranded;
mod reference;
mod shared;
mod state_machine;
mod strategy;
mod turn;
mod unfolding;
mod unlock;
mod view;

/// The name of the tool with which a model searches for tools. No other tool can have it.
pub const SEARCH_TOOLS: &str = "search_tools";

pub use calls::{CallLog, PastCall};
pub use chain::StrategyChain;
pub use chaining::Chaining;
pub use change::{DiscoveredEntity, Injection, RejectedProvider, WithheldTool, write_entity_tool_names};
pub use context::{CompletedCall, InjectionContext};
pub use entities::{Entities, EntityBinding, EntityIdentity};
pub use entity_tools::{ENTITY_DEPTH_MAX, ENTITY_ID_BYTES_MAX, EntityTools};
pub use facade::{Facade, FacadeBuilder};
pub use gate::CallGate;
pub use lineage::Lineage;
pub use playbook::Playbook;
pub use reference::Reference;
pub use shared::{ENTITIES_PER_RESULT_MAX, SharedEntities};
pub use state_machine::{MachineState, StateMachine, StateMachineBuilder};
pub use strategy::{InjectionStrategy, NoInjection};
pub use turn::TurnContext;
pub use unfolding::{FACADE_DEPTH_MAX, Unfolding};
pub use unlock::Unlock;
pub use view::ConversationView;

pub(crate) use change::write_facade_tool_names;
