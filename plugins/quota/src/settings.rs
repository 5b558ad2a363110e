//! The settings of the quota.

/// Whether tools share a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Each tool has its own count.
    Tool,
    /// All tools share one count.
    All,
}

/// The settings of the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The maximum number of calls in a period.
    pub calls: u64,
    /// The length of a period, in seconds.
    pub seconds: u64,
    /// Whether tools share a count.
    pub per: Per,
}

impl Settings {
    /// Reads the settings. Unset ones have their defaults.
    ///
    /// # Errors
    /// For an unknown or invalid setting: a mistyped limit must not be ignored.
    pub fn read<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut settings = Self {
            calls: 100,
            seconds: 24 * 60 * 60,
            per: Per::Tool,
        };
        for (key, value) in entries {
            let invalid = || format!("the setting `{key}` of the quota is invalid: `{value}`");
            match key {
                "calls" => settings.calls = value.parse().map_err(|_| invalid())?,
                "seconds" => {
                    settings.seconds = value.parse().ok().filter(|seconds| *seconds > 0).ok_or_else(invalid)?;
                }
                "per" => {
                    settings.per = match value {
                        "tool" => Per::Tool,
                        "all" => Per::All,
                        _ => return Err(invalid()),
                    }
                }
                _ => return Err(format!("the quota has no setting `{key}`")),
            }
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_defaults_and_mistakes_are_errors() {
        let defaults = Settings::read([]);
        assert_eq!(
            defaults.map(|settings| (settings.calls, settings.per)),
            Ok((100, Per::Tool))
        );
        let read = Settings::read([("calls", "3"), ("seconds", "60"), ("per", "all")]);
        assert_eq!(
            read,
            Ok(Settings {
                calls: 3,
                seconds: 60,
                per: Per::All
            })
        );
        for wrong in [
            ("calls", "many"),
            ("calls", "-1"),
            ("seconds", "0"),
            ("per", "user"),
            ("call", "3"),
        ] {
            assert!(Settings::read([wrong]).is_err(), "{wrong:?}");
        }
    }
}
