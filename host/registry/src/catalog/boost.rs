//! What speaks for or against a tool apart from its words.

/// The most that frequent use multiplies a score by.
const USE_FACTOR_MAX: f32 = 1.2;

/// Whether a tool works, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum HealthBoost {
    /// It worked when it was last tried.
    Healthy,
    /// It was never tried, or long ago.
    #[default]
    Unknown,
    /// It failed when it was last tried: it stands behind all that are not broken.
    Broken,
}

impl HealthBoost {
    pub(super) fn factor(self) -> f32 {
        match self {
            Self::Healthy => 1.05,
            Self::Unknown => 1.0,
            Self::Broken => 0.5,
        }
    }
}

/// What speaks for or against a tool apart from its words. It multiplies, so that it never lifts a tool that does not match.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RankingSignals {
    /// Whether it works.
    pub health: HealthBoost,
    /// How well it is described, from 0 to 1.
    pub quality: f32,
    /// How often it was called with success.
    pub uses: u64,
}

impl RankingSignals {
    /// Puts together what is known of a tool.
    #[must_use]
    pub fn new(health: HealthBoost, quality: f32, uses: u64) -> Self {
        Self { health, quality, uses }
    }

    /// What a score is multiplied by; small beside the difference that a word makes.
    #[cfg(test)]
    fn factor(&self) -> f32 {
        self.lasting_factor() * self.health.factor()
    }

    /// The part of the factor that no single call changes.
    pub(super) fn lasting_factor(&self) -> f32 {
        let quality = if self.quality.is_finite() {
            self.quality.clamp(0.0, 1.0)
        } else {
            0.0
        };
        #[allow(clippy::cast_precision_loss, reason = "a count as a factor needs no precision")]
        let uses = (1.0 + 0.05 * (self.uses as f32 + 1.0).log10()).min(USE_FACTOR_MAX);
        (1.0 + 0.1 * quality) * uses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // accept: 108
    #[test]
    fn every_factor_is_positive_and_bounded() {
        let best = RankingSignals::new(HealthBoost::Healthy, 1.0, u64::MAX).factor();
        let worst = RankingSignals::new(HealthBoost::Broken, f32::NAN, 0).factor();
        assert!(best < 1.5 && worst > 0.0, "{best} {worst}");
        assert!(RankingSignals::new(HealthBoost::Unknown, f32::INFINITY, 0).factor() <= 1.1);
    }
}
