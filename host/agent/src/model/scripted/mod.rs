//! A model that plays a script: for tests, demonstrations and tools under development. No network and no key.
//!
//! A [`Scripted`] model holds [`Turn`]s; each inference plays the next one after its [`Expectation`] was checked against
//! what the model was shown. `Scripted::load` reads the same from a scenario in TOML (feature `scripted`).

mod expect;
mod model;
mod protocol;
mod scenario;
mod shown;
mod template;
mod text_match;
mod turn;

pub use expect::Expectation;
pub use model::{Scripted, ShownRequest};
pub use text_match::TextMatch;
pub use turn::Turn;

#[cfg(test)]
mod tests;
