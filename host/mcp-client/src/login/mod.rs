//! Logins of users: their tokens, and where they are stored.

mod login;
mod login_slot;
mod login_store;

pub(crate) use login::Login;
pub(crate) use login_slot::LoginSlot;
pub use login_store::{LoginStore, NoLogins};
