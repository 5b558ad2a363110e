//! The engine configurations.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The engine configuration that a component requires. The host has one engine for each configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Without the component model's async functions. A call in a fresh instance is about 2.5 times as fast as with
    /// [`Profile::Concurrent`].
    Plain,
    /// With the component model's async functions.
    Concurrent,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
