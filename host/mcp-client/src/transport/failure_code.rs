//! The codes of the JSON-RPC errors with which a transport answers a request that failed. The module `session::request` converts
//! them to a `RequestError`.

/// The code for a lost session. The server did not process the request.
pub(crate) const SESSION_LOST: i32 = -32_090;

/// The code for a request that the server may have processed, and whose answer cannot be used.
pub(crate) const TRANSPORT_FAILED: i32 = -32_091;

/// The code for a server that requires a login. The data of the error is the list of the scopes that the login needs in addition
/// to those that it requests by default.
pub(crate) const AUTHORIZATION_REQUIRED: i32 = -32_092;

/// The code for a failed request that the server did not process.
pub(crate) const NOT_PROCESSED: i32 = -32_093;
