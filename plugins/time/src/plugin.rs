//! The WIT bindings of the time tools.

use jiff::{Unit, ZonedDateTime};

use self::bindings::exports::toolwit_demo::time::time as wit;
use crate::moment;
use crate::zones::{self, zone};

#[allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications)]
mod bindings {
    toolwit_guest::bindings!();
}

bindings::export!(Plugin with_types_in bindings);

struct Plugin;

impl wit::Guest for Plugin {
    fn convert_time(
        time: Option<String>,
        to: Option<String>,
        from_zone: Option<String>,
    ) -> Result<wit::Moment, String> {
        let to = zone(to.as_deref())?;
        let from = match from_zone {
            Some(zone_name) => zone(Some(&zone_name))?,
            None => to.clone(),
        };
        let time = moment::parse(time.as_deref().unwrap_or("now"), &from)?;
        Ok(moment_of(&time.with_time_zone(to)))
    }

    fn add_time(time: String, duration: String, zone_name: Option<String>) -> Result<wit::Moment, String> {
        let time = moment::parse(&time, &zone(zone_name.as_deref())?)?;
        Ok(moment_of(&moment::add(&time, &duration)?))
    }

    fn time_between(
        start: String,
        end: String,
        largest: Option<wit::Unit>,
        zone_name: Option<String>,
    ) -> Result<wit::Difference, String> {
        let zone = zone(zone_name.as_deref())?;
        let (start, end) = (moment::parse(&start, &zone)?, moment::parse(&end, &zone)?);
        let difference = moment::between(&start, &end, largest.unwrap_or(wit::Unit::Days).into())?;
        Ok(wit::Difference {
            words: difference.words,
            iso: difference.iso,
            seconds: difference.seconds,
        })
    }

    fn find_zones(query: String) -> Vec<String> {
        zones::find(&query)
    }
}

/// Converts a time to the form of the interface.
fn moment_of(time: &ZonedDateTime) -> wit::Moment {
    let info = time.time_zone().to_offset_info(time.timestamp());
    wit::Moment {
        time: time.to_string(),
        utc: time.timestamp().to_string(),
        unix_seconds: time.timestamp().as_second(),
        weekday: format!("{:?}", time.weekday()),
        iso_week: moment::iso_week(time),
        day_of_year: time.day_of_year().unsigned_abs(),
        abbreviation: info.abbreviation().to_owned(),
        daylight_saving: info.dst().is_dst(),
    }
}

impl From<wit::Unit> for Unit {
    fn from(unit: wit::Unit) -> Self {
        match unit {
            wit::Unit::Years => Self::Year,
            wit::Unit::Months => Self::Month,
            wit::Unit::Weeks => Self::Week,
            wit::Unit::Days => Self::Day,
            wit::Unit::Hours => Self::Hour,
            wit::Unit::Minutes => Self::Minute,
            wit::Unit::Seconds => Self::Second,
        }
    }
}
