//! Ranking signals that do not depend on the query.

/// The greatest factor for frequent use.
const USE_FACTOR_MAX: f32 = 1.2;

/// The greatest factor for the popularity that a manifest declares. The factor is small, because the popularity is not verified.
const POPULARITY_FACTOR_MAX: f32 = 1.03;

/// The health of a tool, as a ranking signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum HealthSignal {
    /// The last health check was recent, and found that the tool works.
    Healthy,
    /// No health check has run the tool, or the last health check is too old.
    #[default]
    Unknown,
    /// The last health check was recent, and found that the component does not load or that the tool fails. The tool ranks
    /// below the tools that are not broken, unless the query names it.
    Broken,
}

impl HealthSignal {
    pub(super) fn factor(self) -> f32 {
        match self {
            Self::Healthy => 1.05,
            Self::Unknown => 1.0,
            Self::Broken => 0.5,
        }
    }
}

/// Ranking signals that do not depend on the query. Their factors multiply the score, so that a tool which does not match stays at
/// zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RankingSignals {
    /// The tool's health.
    pub health: HealthSignal,
    /// The quality of its description and of its manifest, from 0 to 1.
    pub quality: f32,
    /// The number of calls that returned a result. A result that is an error counts too.
    pub uses: u64,
    /// The popularity that the author declares, such as a number of downloads.
    pub popularity: u64,
}

impl RankingSignals {
    /// Creates the signals of a tool without a declared popularity.
    #[must_use]
    pub fn new(health: HealthSignal, quality: f32, uses: u64) -> Self {
        Self {
            health,
            quality,
            uses,
            popularity: 0,
        }
    }

    /// Returns the product of all factors.
    #[cfg(test)]
    fn factor(&self) -> f32 {
        self.static_factor() * use_factor(self.uses) * self.health.factor()
    }

    /// Returns the factor for the signals that calls do not change: quality and popularity.
    pub(super) fn static_factor(&self) -> f32 {
        let quality = if self.quality.is_finite() {
            self.quality.clamp(0.0, 1.0)
        } else {
            0.0
        };
        (1.0 + 0.1 * quality) * logarithmic_factor(self.popularity, 0.005, POPULARITY_FACTOR_MAX)
    }
}

/// Returns the factor for a number of uses.
pub(super) fn use_factor(uses: u64) -> f32 {
    logarithmic_factor(uses, 0.05, USE_FACTOR_MAX)
}

/// Returns a factor that grows from 1 by `step` for each power of ten, up to `factor_max`.
#[allow(clippy::cast_precision_loss, reason = "a count as a factor needs no precision")]
fn logarithmic_factor(count: u64, step: f32, factor_max: f32) -> f32 {
    (1.0 + step * (count as f32 + 1.0).log10()).min(factor_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    // accept: 108
    #[test]
    fn every_factor_is_positive_and_limited() {
        let best = RankingSignals::new(HealthSignal::Healthy, 1.0, u64::MAX).factor();
        let worst = RankingSignals::new(HealthSignal::Broken, f32::NAN, 0).factor();
        assert!(best < 1.5 && worst > 0.0, "{best} {worst}");
        let declared = RankingSignals {
            popularity: u64::MAX,
            ..RankingSignals::default()
        };
        let used = RankingSignals::new(HealthSignal::Unknown, 0.0, 10);
        assert!(
            declared.factor() < used.factor(),
            "ten uses weigh more than any declared popularity"
        );
        assert!(RankingSignals::new(HealthSignal::Unknown, f32::INFINITY, 0).factor() <= 1.1);
    }
}
