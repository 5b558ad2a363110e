//! Conversations that combine several features, as an application uses them: through the public interface only.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod guards;
mod locks;
mod many_tools;
mod one_response;
mod resuming;
mod support;
