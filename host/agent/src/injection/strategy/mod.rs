//! The port that every injection strategy implements, and its two answers: an [`Injection`] and a [`CallGate`].

mod call_gate;
mod injection;
mod port;

pub use call_gate::CallGate;
pub use injection::{Injection, RejectedProvider, WithheldTool};
pub use port::{InjectionStrategy, NoInjection};
