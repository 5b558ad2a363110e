//! The limit on a server's requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Maximum number of requests that are answered on one connection in one window. A correct server sends few requests:
/// questions to the user, requests for inference, and pings.
const REQUESTS_MAX: u32 = 600;

/// The length of a window in which requests are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// Limits the requests that a server sends on one connection in each window. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestLimit(Arc<Mutex<RequestWindow>>);

#[derive(Debug, Default)]
struct RequestWindow {
    start: Option<Instant>,
    requests: u32,
}

impl RequestLimit {
    /// Counts a request, and returns whether it may be answered. The first excess request of a window is logged.
    pub(super) fn admit(&self) -> bool {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.start.is_none_or(|start| start.elapsed() >= WINDOW) {
            *window = RequestWindow {
                start: Some(Instant::now()),
                requests: 0,
            };
        }
        window.requests = window.requests.saturating_add(1);
        if window.requests == REQUESTS_MAX + 1 {
            tracing::warn!(
                "an MCP server sends more than {REQUESTS_MAX} requests in a minute; requests beyond this limit are ignored"
            );
        }
        window.requests <= REQUESTS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // attack: G9
    #[tokio::test(start_paused = true)]
    async fn a_minute_has_a_limited_number_of_requests() {
        let limit = RequestLimit::default();
        for _ in 0..REQUESTS_MAX {
            assert!(limit.admit());
        }
        assert!(!limit.admit() && !limit.clone().admit());
        tokio::time::advance(WINDOW).await;
        assert!(limit.admit());
    }
}
