//! The login of a user to a server over HTTP, in the user's browser, and the logout.

mod authorization_response;
mod login_request;
mod logout;
mod pending_login;
mod pkce;
mod redirect;
mod registration;
mod requested_scopes;

pub use login_request::LoginRequest;
pub use logout::{Logout, Revocation};
pub use pending_login::{LoginReport, PendingLogin};
