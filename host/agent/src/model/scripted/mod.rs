//! A model that plays a script: for tests, demonstrations and tools under development. No network and no key.
//!
//! A [`ScriptedModel`] model holds [`ScriptedTurn`]s; each inference plays the next one after its [`Expectation`] was checked against
//! what the model was shown. `ScriptedModel::load` reads the same from a scenario in TOML (feature `scripted`).

mod expect;
mod model;
mod protocol;
mod scenario;
mod shown;
mod template;
mod text_match;
mod turn;

pub use expect::Expectation;
pub use model::{RecordedRequest, ScriptedModel};
pub use text_match::TextMatch;
pub use turn::ScriptedTurn;

#[cfg(test)]
mod tests;
