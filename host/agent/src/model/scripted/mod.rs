//! A model that plays a script, for tests and demonstrations. It needs neither a network nor an API key.
//!
//! A [`ScriptedModel`] holds [`ScriptedTurn`]s. Each inference checks the [`Expectation`] of the next turn against the
//! request and then plays the turn. [`ScriptedModel::load`] reads a script from a scenario: a TOML file.

mod expectation;
mod json_pointer;
mod provider_rules;
mod request_view;
mod scenario;
mod scripted_model;
mod scripted_turn;
mod template;
mod text_match;

pub use expectation::Expectation;
pub use scripted_model::{RecordedRequest, ScriptedModel};
pub use scripted_turn::ScriptedTurn;
pub use text_match::TextMatch;

#[cfg(test)]
mod tests;
