//! Time zones.

use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::{self, TimeZone};

/// Maximum number of names in a result.
const NAMES_MAX: usize = 50;

/// Returns the zone of a name or an offset, by default UTC.
///
/// # Errors
/// If there is no such zone; the error has similar names.
pub fn zone(name: Option<&str>) -> Result<TimeZone, String> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    let Some(name) = name.map(str::trim).filter(|name| !name.is_empty()) else {
        return Ok(TimeZone::UTC);
    };
    if let Ok(zone) = tz::db().get(name) {
        return Ok(zone);
    }
    // An offset has a sign; a rule such as `EST5EDT` would be accepted for a mistyped name otherwise.
    if name.starts_with(['+', '-'])
        && let Ok(zone) = PARSER.parse_time_zone(name)
    {
        return Ok(zone);
    }
    let last = name.rsplit('/').next().unwrap_or(name);
    let similar = find(last);
    if similar.is_empty() {
        return Err(format!(
            "there is no time zone `{name}`; use a name such as `Europe/Berlin`, or an offset such as `+02:00`"
        ));
    }
    Err(format!(
        "there is no time zone `{name}`; similar names are {}",
        similar.join(", ")
    ))
}

/// Finds the names of zones that contain a text, ignoring case. Spaces match underscores. Returns at most 50 names.
#[must_use]
pub fn find(query: &str) -> Vec<String> {
    let query = query.trim().to_lowercase().replace(' ', "_");
    let names = tz::db().available().map(|name| name.to_string());
    let mut matches: Vec<_> = names.filter(|name| name.to_lowercase().contains(&query)).collect();
    matches.sort();
    matches.truncate(NAMES_MAX);
    matches
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_found_by_name_offset_and_part_of_a_name() {
        assert_eq!(zone(Some("europe/berlin")).unwrap().iana_name(), Some("Europe/Berlin"));
        assert!(zone(Some("+05:30")).is_ok());
        assert_eq!(zone(None).unwrap(), TimeZone::UTC);
        assert!(find("new york").contains(&"America/New_York".to_owned()));
        assert!(zone(Some("Germany/Berlin")).unwrap_err().contains("Europe/Berlin"));
        assert!(zone(Some("Nowhere/Xyzzy")).is_err());
    }
}
