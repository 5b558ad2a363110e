//! Logins of users: their tokens, and the store of the tokens.

mod login_slot;
mod login_store;
mod stored_login;

pub(crate) use login_slot::LoginSlot;
pub use login_store::{LoginStore, NoLogins};
pub(crate) use stored_login::StoredLogin;
