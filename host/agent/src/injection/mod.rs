//! Which tools the model sees next, and which of them it may call.
//!
//! After every tool result, in call order, the loop asks an [`InjectionStrategy`] what to add and what to remove; before every
//! call it asks whether the tool may be called now. A strategy decides and the loop applies: names, limits and events are the
//! loop's. All that a strategy knows is a [`Scene`], which follows from the conversation's events, so the same conversation
//! always ends in the same tools.
//!
//! [`Unfolding`] and [`EntityTools`] are on by default: they bring in the tools behind a [`Facade`], and the methods of objects
//! that a result holds. [`Chaining`] shows such methods another way. [`Playbook`] and [`StateMachine`] lock tools. Several strategies form a [`Chain`].

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
mod scene;
mod shared;
mod state_machine;
mod strategy;
mod turn;
mod unfolding;
mod unlock;

/// The name of the tool with which a model searches for tools. No other tool can have it.
pub const SEARCH_TOOLS: &str = "search_tools";

pub use calls::{CallLog, PastCall};
pub use chain::Chain;
pub use chaining::Chaining;
pub use change::{Discovery, Injection, RejectedProvider, Withheld, name_discovered};
pub use context::{CompletedCall, InjectionContext};
pub use entities::{Binding, Entities, EntityKey};
pub use entity_tools::{ENTITY_DEPTH_MAX, ENTITY_ID_BYTES_MAX, EntityTools};
pub use facade::{Facade, FacadeBuilder};
pub use gate::Gate;
pub use lineage::Lineage;
pub use playbook::Playbook;
pub use reference::Reference;
pub use scene::Scene;
pub use shared::{ENTITIES_PER_RESULT_MAX, SharedEntities};
pub use state_machine::{State, StateMachine, StateMachineBuilder};
pub use strategy::{InjectionStrategy, NoInjection};
pub use turn::TurnContext;
pub use unfolding::{FACADE_DEPTH_MAX, Unfolding};
pub use unlock::Unlock;

pub(crate) use change::name_listed;
