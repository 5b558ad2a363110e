//! The trait of injection strategies, and the two types that it returns: [`Injection`] and [`CallGate`].

mod call_gate;
mod injection;
mod port;

pub use call_gate::CallGate;
pub use injection::{Injection, TriggeredInjection, WithheldTool};
pub use port::{InjectionStrategy, NoInjection};
