//! Injection: adding and removing tools of a conversation in response to results.
//!
//! After every tool result, in call order, the loop evaluates an [`InjectionStrategy`], which returns the tools to add and
//! to remove. Before every call, the strategy decides whether the tool may be called ([`CallGate`]). The strategy decides;
//! the loop applies the changes, assigns names, enforces limits and emits events. A strategy sees the conversation as a
//! [`ConversationView`]. Apart from the tools' context, this view depends only on the events of the conversation, so that the
//! same events lead to the same tools.
//!
//! - `strategy`: the trait of strategies and its results ([`InjectionStrategy`], [`Injection`], [`CallGate`])
//! - `view`: the conversation as strategies see it ([`ConversationView`], [`InjectionContext`], [`TurnContext`])
//! - `entity`: live objects and their tools ([`Entities`], [`DiscoveredEntity`], [`EntityGroup`])
//! - `entity_tools`: methods of every live object as tools ([`EntityTools`])
//! - `facade`: tools that reveal further tools ([`Facade`], [`Unfolding`])
//! - `gating`: tools that are locked until a condition holds ([`Playbook`], [`StateMachine`])
//! - `registered_tools`: tools that a running application registers ([`RegisteredTools`])
//! - `chaining`: methods that act on the object that was returned last ([`Chaining`])
//! - `strategy_chain`: several strategies as one ([`StrategyChain`])
//!
//! [`Unfolding`] and [`EntityTools`] are enabled by default.

mod chaining;
mod entity;
mod entity_tools;
mod facade;
mod gating;
mod registered_tools;
mod strategy;
mod strategy_chain;
mod view;

/// Name of the tool with which a model searches for tools. It is reserved: no other tool can have it.
pub const SEARCH_TOOLS: &str = "search_tools";

pub use chaining::Chaining;
pub use entity::{
    DiscoveredEntity, Entities, EntityBinding, EntityGroup, EntityIdentity, GroupAddition, number_objects,
    write_entity_tool_names,
};
pub use entity_tools::EntityTools;
pub use facade::{Facade, FacadeBuilder, Reference, Unfolding};
pub use gating::{MachineState, Playbook, StateMachine, StateMachineBuilder, Unlock};
pub use registered_tools::RegisteredTools;
pub use strategy::{CallGate, Injection, InjectionStrategy, NoInjection, TriggeredInjection, WithheldTool};
pub use strategy_chain::StrategyChain;
pub use view::{
    CallLog, CallableTools, CompletedCall, ConversationView, InjectionContext, Lineage, PastCall, TurnContext,
};

pub(crate) use entity::shared_method_id;
pub(crate) use facade::write_facade_tool_names;
