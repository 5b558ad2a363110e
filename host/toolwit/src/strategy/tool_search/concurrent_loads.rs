//! Loads the tools that a search found, concurrently.

use std::future::Future;

use futures::future::join_all;
use toolwit_core::Error;

/// Runs loads concurrently. Returns the loaded tools in the order of the loads, and omits those that fail.
pub(super) async fn load_all<T, L>(loads: impl IntoIterator<Item = L>) -> Vec<T>
where
    L: Future<Output = Result<T, Error>>,
{
    join_all(loads).await.into_iter().flatten().collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use tokio::sync::Barrier;
    use toolwit_core::{ErrorKind, Phase};

    use super::*;

    // accept: 112
    #[tokio::test(start_paused = true)]
    async fn tools_load_in_parallel_and_one_that_fails_is_skipped() {
        // Each load waits until all three run. If the loads ran one after the other, the first would wait forever.
        let barrier = Barrier::new(3);
        let loads = ["first", "broken", "last"].map(|tool| {
            let barrier = &barrier;
            async move {
                barrier.wait().await;
                match tool {
                    "broken" => Err(Error::new(ErrorKind::Unsupported, Phase::Load, "it is broken")),
                    _ => Ok(tool),
                }
            }
        });
        let loaded = tokio::time::timeout(Duration::from_secs(1), load_all(loads)).await;
        assert_eq!(loaded.unwrap(), ["first", "last"]);
    }
}
