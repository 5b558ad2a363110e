//! The network access of guests. For every outgoing request, [`HttpGate`] checks the grants and draws on the budget. Then the module
//! `dial` inserts secrets, resolves the host, checks the addresses, and connects.

#[cfg(feature = "network")]
mod body;
#[cfg(feature = "network")]
mod counted_stream;
#[cfg(feature = "network")]
mod dial;
mod exchange;
mod gate;
mod http_budget;
mod network;
mod resolve;
#[cfg(feature = "network")]
mod response_restrictions;
mod secret_placement;
#[cfg(feature = "network")]
mod trust;

pub(super) use exchange::{CompleteResponse, ExchangeError, build_request, collect_headers, exchange};
pub(crate) use gate::HttpGate;
pub(super) use gate::{BODY_CHUNK_BYTES, BODY_CHUNKS};
pub(crate) use http_budget::{HttpBudget, HttpLimits};
pub(crate) use network::Network;
pub use resolve::{Resolve, ResolveFuture};
#[cfg(feature = "network")]
pub(crate) use trust::ExtraRoots;
