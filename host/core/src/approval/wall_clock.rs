//! The clock for the time limit of a run or a call.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::ToolContext;

/// The time until the deadline of a limit that exceeds the range of the clock: thirty years.
const FAR_FUTURE: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// A clock for the time limit of a run or a call. The clock stops while an approver is asked about a call inside that run or
/// call, so that a late answer does not use up the time limit.
///
/// The clock of a run is an outer clock of the clocks of its calls. A question about a nested call stops the clocks of the
/// outer call and of the run. It does not stop the clocks of other calls of the run.
#[derive(Debug)]
pub struct WallClock {
    started_at: Instant,
    questions: watch::Sender<OpenQuestions>,
    /// The outer clocks, which stop when this clock stops.
    outer_clocks: Vec<Arc<Self>>,
}

/// The questions that stop a clock.
#[derive(Debug, Default)]
struct OpenQuestions {
    count: usize,
    /// The time since which at least one question is open; `None` without an open question.
    open_since: Option<Instant>,
    /// The total time for which the clock was stopped, without the current stop.
    past_stopped_time: Duration,
}

/// A guard that stops a clock and its outer clocks until the guard is dropped. A clock continues when the last guard that
/// stops the clock is dropped.
#[derive(Debug)]
pub struct StoppedClock {
    clock: Arc<WallClock>,
    _outer_clocks: Vec<Self>,
}

impl WallClock {
    /// Starts a clock. The outer clocks stop when this clock stops.
    #[must_use]
    pub fn start(outer_clocks: impl IntoIterator<Item = Arc<Self>>) -> Arc<Self> {
        Arc::new(Self {
            started_at: Instant::now(),
            questions: watch::Sender::default(),
            outer_clocks: outer_clocks.into_iter().collect(),
        })
    }

    /// Returns the clock of a context, if it has one.
    #[must_use]
    pub fn of(context: &ToolContext) -> Option<Arc<Self>> {
        context.extension::<Arc<Self>>().cloned()
    }

    /// Returns the time since the start, without the time for which the clock was stopped.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started_at.elapsed().saturating_sub(self.stopped_time())
    }

    /// Returns the time at which the clock reaches a limit, if it is not stopped until then.
    #[must_use]
    pub fn deadline(&self, max: Duration) -> Instant {
        let deadline = self.started_at.checked_add(max.saturating_add(self.stopped_time()));
        deadline.unwrap_or_else(|| self.started_at + FAR_FUTURE)
    }

    /// Waits until the clock reaches a limit.
    pub async fn wait_for_limit(&self, max: Duration) {
        let mut questions = self.questions.subscribe();
        loop {
            let is_stopped = questions.borrow_and_update().count > 0;
            tokio::select! {
                biased;
                // `changed` never fails, because `self` holds the sender.
                _ = questions.changed() => {}
                () = sleep_until(self.deadline(max)), if !is_stopped => return,
            }
        }
    }

    /// Stops this clock and its outer clocks until the returned guard is dropped.
    #[must_use]
    pub fn stop(self: &Arc<Self>) -> StoppedClock {
        self.questions.send_modify(|questions| {
            questions.count += 1;
            questions.open_since.get_or_insert_with(Instant::now);
        });
        StoppedClock {
            clock: self.clone(),
            _outer_clocks: self.outer_clocks.iter().map(Self::stop).collect(),
        }
    }

    /// Returns the total time for which the clock was stopped, including the current stop.
    fn stopped_time(&self) -> Duration {
        let questions = self.questions.borrow();
        let current_stop = questions.open_since.map_or(Duration::ZERO, |since| since.elapsed());
        questions.past_stopped_time.saturating_add(current_stop)
    }
}

impl Drop for StoppedClock {
    fn drop(&mut self) {
        self.clock.questions.send_modify(|questions| {
            questions.count = questions.count.saturating_sub(1);
            if questions.count == 0
                && let Some(since) = questions.open_since.take()
            {
                questions.past_stopped_time = questions.past_stopped_time.saturating_add(since.elapsed());
            }
        });
    }
}

impl ToolContext {
    /// Sets the clock of the run or the call.
    #[must_use]
    pub fn with_wall_clock(self, clock: Arc<WallClock>) -> Self {
        self.with_extension(clock)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn clock_stops_while_at_least_one_question_is_open() {
        let run = WallClock::start([]);
        let call = WallClock::start([run.clone()]);
        let other_call = WallClock::start([run.clone()]);
        advance(SECOND).await;
        let first = call.stop();
        advance(SECOND).await;
        let second = other_call.stop();
        drop(first);
        advance(SECOND).await;
        assert_eq!(
            [run.elapsed(), call.elapsed(), other_call.elapsed()],
            [SECOND, 2 * SECOND, 2 * SECOND]
        );
        drop(second);
        advance(SECOND).await;
        assert_eq!(run.elapsed(), 2 * SECOND);
        assert_eq!(run.deadline(3 * SECOND), Instant::now() + SECOND);
        assert!(run.deadline(Duration::MAX) > Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn limit_is_reached_without_the_time_of_a_question() {
        let clock = WallClock::start([]);
        let started = Instant::now();
        let question = async {
            let stopped = clock.stop();
            tokio::time::sleep(60 * SECOND).await;
            drop(stopped);
        };
        tokio::join!(clock.wait_for_limit(5 * SECOND), question);
        assert_eq!(started.elapsed(), 65 * SECOND);
    }
}
