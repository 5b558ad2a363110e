//! The engine configuration that a component requires.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The engine configuration that a component requires. The host has one engine for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// No concurrency inside a component. A fresh call costs 2.5 times less than with [`Profile::Concurrent`].
    Plain,
    /// With the component model's async functions.
    Concurrent,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
