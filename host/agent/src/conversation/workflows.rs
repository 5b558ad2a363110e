//! Setters of the builder for chaining, playbooks and state machines.

use super::builder::ConversationBuilder;
use crate::injection::{Chaining, MachineState, Playbook, StateMachine};
use toolwit_core::EntityMethods;

impl ConversationBuilder {
    /// Chains tools to returned objects: the methods of a type are declared from the start, and act on the object that a result
    /// returned last.
    #[must_use]
    pub fn chaining(self, chaining: Chaining) -> Self {
        self.map_config(|config| config.with_chaining(chaining))
    }

    /// Chains tools to the objects of a Rust type. See [`chaining`](Self::chaining).
    #[must_use]
    pub fn chain_from<T: Send + Sync + 'static>(self, methods: &EntityMethods<T>) -> Self {
        self.chaining(Chaining::new().with_type(methods))
    }

    /// Chains tools to objects of any type: the tools of the last object replace those of the previous object. See
    /// [`Chaining::with_any_type`].
    #[must_use]
    pub fn chain_from_any(self) -> Self {
        self.chaining(Chaining::new().with_any_type())
    }

    /// Sets the playbook and adds its tools. It replaces an earlier playbook and its tools.
    #[must_use]
    pub fn playbook(self, playbook: Playbook) -> Self {
        self.map_config(|config| config.with_playbook(playbook))
    }

    /// Sets the state machine and adds its tools. It replaces an earlier state machine and its tools.
    #[must_use]
    pub fn state_machine<S: MachineState>(self, machine: StateMachine<S>) -> Self {
        self.map_config(|config| config.with_state_machine(machine))
    }
}
