//! Strategies that lock tools until the conversation permits their call.

mod playbook;
mod state_machine;
mod unlock;

pub use playbook::Playbook;
pub use state_machine::{MachineState, StateMachine, StateMachineBuilder};
pub use unlock::Unlock;
