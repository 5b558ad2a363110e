//! The engine configuration that a component requires.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The engine configuration that a component requires. The host has one engine for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Without async functions. With [`Profile::Concurrent`], a call in a fresh instance takes about 2.5 times as long.
    Plain,
    /// With the component model's async functions.
    Concurrent,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
