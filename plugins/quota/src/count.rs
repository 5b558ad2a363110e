//! The count of one period, as it is stored.

use crate::settings::Settings;

/// The calls of one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The start of the period, in seconds since 1970.
    pub start: u64,
    /// The number of calls.
    pub calls: u64,
}

impl Count {
    /// Parses a stored count.
    ///
    /// # Errors
    /// If it is damaged: the calls so far are then unknown.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let parse = || {
            let (start, calls) = text.split_once(' ')?;
            Some(Self {
                start: start.parse().ok()?,
                calls: calls.parse().ok()?,
            })
        };
        parse().ok_or_else(|| "the stored count of the quota is damaged".to_owned())
    }

    /// Returns the text to store.
    #[must_use]
    pub fn to_text(self) -> String {
        format!("{} {}", self.start, self.calls)
    }

    /// Counts a call.
    ///
    /// # Errors
    /// If the quota is used up, with the time at which the next period begins.
    pub fn add_call(stored: Option<Self>, now: u64, settings: &Settings) -> Result<Self, String> {
        let new_period = Self { start: now, calls: 0 };
        // A clock that was set back does not begin a period.
        let current = stored.filter(|count| now.saturating_sub(count.start) < settings.seconds);
        let mut count = current.unwrap_or(new_period);
        if count.calls >= settings.calls {
            let seconds_left = (count.start.saturating_add(settings.seconds)).saturating_sub(now);
            return Err(format!(
                "the quota of {} calls is used up; the next period begins in {seconds_left} s",
                settings.calls
            ));
        }
        count.calls += 1;
        Ok(count)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::settings::Per;

    const SETTINGS: Settings = Settings {
        calls: 2,
        seconds: 60,
        per: Per::Tool,
    };

    #[test]
    fn calls_are_counted_until_the_period_ends() {
        let first = Count::add_call(None, 100, &SETTINGS);
        assert_eq!(first, Ok(Count { start: 100, calls: 1 }));
        let second = Count::add_call(first.ok(), 159, &SETTINGS);
        assert_eq!(second, Ok(Count { start: 100, calls: 2 }));
        let error = Count::add_call(second.clone().ok(), 159, &SETTINGS).unwrap_err();
        assert!(error.contains("begins in 1 s"), "{error}");
        assert!(
            Count::add_call(second.clone().ok(), 50, &SETTINGS).is_err(),
            "the clock was set back"
        );
        assert_eq!(
            Count::add_call(second.ok(), 160, &SETTINGS),
            Ok(Count { start: 160, calls: 1 })
        );
    }

    #[test]
    fn stored_count_is_read_again_and_damage_is_an_error() {
        let count = Count { start: 7, calls: 3 };
        assert_eq!(Count::parse(count.to_text().as_bytes()), Ok(count));
        for damaged in [&b""[..], b"7", b"7 x", b"7 -1", &[0xff]] {
            assert!(Count::parse(damaged).is_err());
        }
    }
}
