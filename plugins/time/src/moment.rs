//! Points in time, and the time between them.

use jiff::civil::DateTime;
use jiff::fmt::friendly::{Designator, Direction, Spacing, SpanPrinter};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Unit, ZonedDateTime};

/// Parses a time. A local time is interpreted in `zone`, and any other time is converted to `zone`.
///
/// # Errors
/// If the text is not a time.
pub fn parse(text: &str, zone: &TimeZone) -> Result<ZonedDateTime, String> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("now") {
        return Ok(Timestamp::now().to_zoned_datetime(zone.clone()));
    }
    if text.contains('[') {
        let zoned: ZonedDateTime = text.parse().map_err(|error| invalid(text, &error))?;
        return Ok(zoned.with_time_zone(zone.clone()));
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Ok(timestamp.to_zoned_datetime(zone.clone()));
    }
    let local: DateTime = text.parse().map_err(|error| invalid(text, &error))?;
    local
        .to_zoned_datetime(zone.clone())
        .map_err(|error| invalid(text, &error))
}

fn invalid(text: &str, error: &jiff::Error) -> String {
    format!("`{text}` is not a time such as `2026-03-01T09:30`, `2026-03-01T09:30:00Z` or `now`: {error}")
}

/// Adds a duration in words or in ISO 8601.
///
/// # Errors
/// If the text is not a duration, or the result is out of range.
pub fn add(time: &ZonedDateTime, duration: &str) -> Result<ZonedDateTime, String> {
    let span: Span = duration
        .trim()
        .parse()
        .map_err(|error| format!("`{duration}` is not a duration such as `1 month 3 days` or `P1M3D`: {error}"))?;
    time.checked_add(span).map_err(|error| error.to_string())
}

/// The time between two times.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    /// The time in words.
    pub words: String,
    /// The duration of ISO 8601.
    pub iso: String,
    /// The number of seconds.
    pub seconds: i64,
}

/// Calculates the time from one time to another.
///
/// # Errors
/// If the time between them is out of range.
pub fn between(start: &ZonedDateTime, end: &ZonedDateTime, largest: Unit) -> Result<Difference, String> {
    let span = start.until((largest, end)).map_err(|error| error.to_string())?;
    let printer = SpanPrinter::new()
        .designator(Designator::Verbose)
        .spacing(Spacing::BetweenUnitsAndDesignators)
        .comma_after_designator(true)
        .direction(Direction::Suffix);
    Ok(Difference {
        words: printer.span_to_string(&span),
        iso: span.to_string(),
        seconds: end.timestamp().as_second() - start.timestamp().as_second(),
    })
}

/// Returns the week of ISO 8601.
#[must_use]
pub fn iso_week(time: &ZonedDateTime) -> String {
    let week = time.date().iso_week_date();
    format!("{:04}-W{:02}", week.year(), week.week())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::zones::zone;

    fn berlin(text: &str) -> ZonedDateTime {
        parse(text, &zone(Some("Europe/Berlin")).unwrap()).unwrap()
    }

    #[test]
    fn local_times_are_in_the_zone_and_others_are_converted_to_it() {
        assert_eq!(
            berlin("2026-07-01T12:00").to_string(),
            "2026-07-01T12:00:00+02:00[Europe/Berlin]"
        );
        assert_eq!(
            berlin("2026-01-01").to_string(),
            "2026-01-01T00:00:00+01:00[Europe/Berlin]"
        );
        for text in [
            "2026-07-01T12:00Z",
            "2026-07-01T08:00-04:00",
            "2026-07-01T08:00[America/New_York]",
        ] {
            assert_eq!(
                berlin(text).to_string(),
                "2026-07-01T14:00:00+02:00[Europe/Berlin]",
                "{text}"
            );
        }
        assert!(parse("next tuesday", &TimeZone::UTC).is_err());
        assert!(parse("2026-02-30", &TimeZone::UTC).is_err());
    }

    #[test]
    fn days_follow_the_calendar_and_hours_are_exact() {
        let before = berlin("2026-03-28T12:00");
        assert!(
            add(&before, "1 day")
                .unwrap()
                .to_string()
                .starts_with("2026-03-29T12:00:00+02:00")
        );
        assert!(
            add(&before, "24 hours")
                .unwrap()
                .to_string()
                .starts_with("2026-03-29T13:00:00+02:00")
        );
        assert!(
            add(&berlin("2026-01-31"), "P1M")
                .unwrap()
                .to_string()
                .starts_with("2026-02-28")
        );
        assert!(add(&before, "soon").is_err());
        assert!(add(&before, "9000 years").is_err());
    }

    #[test]
    fn differences_have_words_a_standard_form_and_seconds() {
        let (start, end) = (berlin("2026-11-20"), berlin("2026-12-24T06:00"));
        let days = between(&start, &end, Unit::Day).unwrap();
        assert_eq!(
            (days.words.as_str(), days.iso.as_str()),
            ("34 days, 6 hours", "P34DT6H")
        );
        assert_eq!(days.seconds, 34 * 86_400 + 6 * 3600);
        assert_eq!(
            between(&end, &start, Unit::Month).unwrap().words,
            "1 month, 4 days, 6 hours ago"
        );
    }

    #[test]
    fn the_week_of_a_year_can_begin_in_the_year_before() {
        assert_eq!(iso_week(&berlin("2027-01-01")), "2026-W53");
    }
}
