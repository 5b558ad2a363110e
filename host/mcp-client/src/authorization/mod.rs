//! Logging in to servers over HTTP, in the user's browser, and out again.

mod authorization_code;
mod login_request;
mod logout;
mod pending_login;
mod pkce;
mod redirect;
mod registration;
mod required_scopes;

pub use login_request::LoginRequest;
pub use logout::{Logout, Revocation};
pub use pending_login::{LoginReport, PendingLogin};
