//! The open HTTP responses of a session.

use std::time::Duration;

use tokio::sync::watch;

/// Maximum time in which a client that lost its connection can open another one.
const RESUMPTION_MAX: Duration = Duration::from_secs(10);

/// Counts the open HTTP responses of a session. The client of the session receives questions over these responses. Clones
/// share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenStreams(watch::Sender<usize>);

/// An open response. It is counted until this value is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream(OpenStreams);

impl OpenStreams {
    /// Counts a response until the returned value is dropped.
    pub(crate) fn open(&self) -> OpenStream {
        self.0.send_modify(|open| *open += 1);
        OpenStream(self.clone())
    }

    /// Waits until all responses have been closed for [`RESUMPTION_MAX`]. The client is then considered gone.
    pub(crate) async fn closed(&self) {
        let mut open = self.0.subscribe();
        loop {
            // Waiting fails only if there is no sender, and `self` is a sender.
            let _ = open.wait_for(|open| *open == 0).await;
            let resumed = open.wait_for(|open| *open > 0);
            if tokio::time::timeout(RESUMPTION_MAX, resumed).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    // attack: G12
    #[tokio::test(start_paused = true)]
    async fn a_client_is_gone_some_time_after_its_last_response() {
        let streams = OpenStreams::default();
        let mut closed = Box::pin(streams.closed());
        let (first, second) = (streams.open(), streams.open());
        drop(first);
        tokio::time::advance(RESUMPTION_MAX * 2).await;
        assert!((&mut closed).now_or_never().is_none(), "the second response is open");
        drop(second);
        assert!((&mut closed).now_or_never().is_none());
        tokio::time::advance(RESUMPTION_MAX / 2).await;
        let resumed = streams.open();
        assert!((&mut closed).now_or_never().is_none());
        tokio::time::advance(RESUMPTION_MAX * 2).await;
        assert!((&mut closed).now_or_never().is_none(), "a third response is open");
        drop(resumed);
        closed.await;
    }
}
