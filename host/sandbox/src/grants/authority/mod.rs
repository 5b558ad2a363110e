//! The authority of one call: the current rights of its plugin, the opened directories, the secrets, and the refused accesses.

mod call_authority;
mod conversation;
mod current_grants;
mod file_stamp;
mod key_value_store;
mod ledger;
mod provider;
#[cfg_attr(
    not(feature = "network"),
    allow(dead_code, reason = "without a network nothing streams through it")
)]
mod redact;
mod refusal;
mod rights;
mod secret;

pub(crate) use call_authority::Authority;
pub(crate) use conversation::ConversationNumber;
pub use key_value_store::{KeyValueError, KeyValueStore, MemoryKeyValueStore};
pub(crate) use provider::AuthorityProvider;
#[cfg(feature = "network")]
pub(crate) use redact::StreamMask;
pub use refusal::MissingGrant;
pub(crate) use refusal::Refusal;
pub(crate) use rights::{AuthorityRequest, OpenedRights};
pub(crate) use secret::Secret;
pub use secret::{SecretError, SecretStore};
