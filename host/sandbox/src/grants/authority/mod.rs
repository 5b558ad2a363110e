//! The authority of one call: the current rights of its plugin, the opened directories, the secrets, and the denied
//! accesses.

mod call_authority;
mod conversation_number;
mod current_grants;
mod denial_log;
mod directory_opener;
mod file_stamp;
mod key_value_store;
mod ledger;
mod loaded_grants;
mod provider;
mod rights;
mod secret;

pub(crate) use call_authority::Authority;
pub(crate) use conversation_number::ConversationNumber;
pub(crate) use directory_opener::HostPaths;
pub use key_value_store::{KEY_VALUE_ENTRY_OVERHEAD_BYTES, KeyValueError, KeyValueStore, MemoryKeyValueStore};
pub(crate) use provider::{AuthorityProvider, AuthoritySources};
pub(crate) use rights::{AuthorityRequest, OpenedRights};
pub(crate) use secret::Secret;
pub use secret::{SecretError, SecretStore, SecretValues};
