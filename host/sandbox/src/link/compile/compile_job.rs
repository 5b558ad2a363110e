//! The messages between a host and its compiler process.
//!
//! The host passes a [`CompileJob`] as the second argument, and the component on standard input. Afterwards the host keeps standard
//! input open. When the host ends, standard input is closed, and the compiler process ends too. On standard output, the compiler
//! process writes a [`ReplyHeader`], then the machine code or an error message.

use serde::{Deserialize, Serialize};

use super::engine::MemoryReservation;
use crate::inspect::profile::Profile;

/// The first argument of a compiler process.
pub(super) const COMPILE_ARGUMENT: &str = "toolwit-compile-component";

/// The maximum length of an error message of a compiler process, in bytes.
pub(super) const REPLY_MESSAGE_BYTES: usize = 4 << 10;

/// The settings of one compilation: the configuration of the engine, the size of the component, and the limits of the process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CompileJob {
    pub(super) profile: Profile,
    pub(super) stack_bytes_max: usize,
    pub(super) reservation: MemoryReservation,
    /// The size of the component on standard input, in bytes.
    pub(super) component_bytes: u64,
    /// The compatibility hash of the host's engine. The engine can load only code that an engine with the same hash compiled.
    #[serde(rename = "engine")]
    pub(super) engine_hash: u64,
    pub(super) memory_bytes_max: u64,
    pub(super) processor_seconds_max: u64,
}

/// The header of a reply: whether machine code or an error message follows, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplyHeader {
    /// Whether machine code follows. Otherwise, an error message follows.
    pub(super) is_code: bool,
    pub(super) body_bytes: u64,
}

impl ReplyHeader {
    /// The size of a header, in bytes.
    pub(super) const BYTES: usize = 9;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut header = [u8::from(self.is_code); Self::BYTES];
        header[1..].copy_from_slice(&self.body_bytes.to_le_bytes());
        header
    }

    /// Parses a header. Returns `None` if the first byte is neither 0 nor 1.
    pub(super) fn from_bytes([is_code, body_bytes @ ..]: [u8; Self::BYTES]) -> Option<Self> {
        Some(Self {
            is_code: match is_code {
                0 => false,
                1 => true,
                _ => return None,
            },
            body_bytes: u64::from_le_bytes(body_bytes),
        })
    }
}
