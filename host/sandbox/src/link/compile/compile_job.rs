//! The messages between a host and its compiler process.
//!
//! The host passes a [`CompileJob`] as the second argument and the component on standard input. It keeps standard input open
//! afterwards, so that the process ends when the host does. On standard output the process writes a [`ReplyHeader`], then the
//! machine code or an error message.

use serde::{Deserialize, Serialize};

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
    /// The size of the component on standard input, in bytes.
    pub(super) component_bytes: u64,
    /// The compatibility hash of the host's engine, which can only load code of an engine with the same hash.
    pub(super) engine: u64,
    pub(super) memory_bytes_max: u64,
    pub(super) processor_seconds_max: u64,
}

/// The start of a reply: the outcome, and the length of the code or message that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplyHeader {
    /// Whether machine code follows; otherwise an error message.
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

    /// Parses a header. Returns `None` for bytes that no compiler process of this version writes.
    pub(super) fn from_bytes([outcome, body_bytes @ ..]: [u8; Self::BYTES]) -> Option<Self> {
        Some(Self {
            is_code: match outcome {
                0 => false,
                1 => true,
                _ => return None,
            },
            body_bytes: u64::from_le_bytes(body_bytes),
        })
    }
}
