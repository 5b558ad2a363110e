//! The data of a tool that scoring reads.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::ranking_parameters::FIELD_COUNT;
use super::ranking_signals::{HealthSignal, RankingSignals, use_factor};

/// The data of a tool that scoring reads: the lengths of its fields and the factors of its ranking signals.
#[derive(Debug, Default)]
pub(super) struct ScoringData {
    /// The number of words in each field.
    pub(super) lengths: [u8; FIELD_COUNT],
    /// Whether the tool has entry tools. A search finds such a tool only through them.
    pub(super) is_inner: bool,
    /// The health, as the number that [`ScoringData::set_health`] assigns. Health and uses can change during a search.
    health: AtomicU8,
    uses: AtomicU64,
    /// The factor for the uses, as the bits of an `f32`.
    use_factor: AtomicU32,
    /// The product of the factors that do not change during a search.
    static_factor: f32,
}

impl ScoringData {
    pub(super) fn new(lengths: [u8; FIELD_COUNT], is_inner: bool, signals: &RankingSignals) -> Self {
        let mut scoring = Self {
            lengths,
            is_inner,
            ..Self::default()
        };
        scoring.set_signals(signals);
        scoring
    }

    pub(super) fn set_signals(&mut self, signals: &RankingSignals) {
        self.set_health(signals.health);
        self.uses = AtomicU64::new(signals.uses);
        self.use_factor = AtomicU32::new(use_factor(signals.uses).to_bits());
        self.static_factor = signals.static_factor();
    }

    pub(super) fn add_use(&self) {
        let uses = self.uses.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        self.use_factor.store(use_factor(uses).to_bits(), Ordering::Relaxed);
    }

    pub(super) fn set_health(&self, health: HealthSignal) {
        let code = match health {
            HealthSignal::Unknown => 0,
            HealthSignal::Healthy => 1,
            HealthSignal::Broken => 2,
        };
        self.health.store(code, Ordering::Relaxed);
    }

    fn health(&self) -> HealthSignal {
        match self.health.load(Ordering::Relaxed) {
            1 => HealthSignal::Healthy,
            2 => HealthSignal::Broken,
            _ => HealthSignal::Unknown,
        }
    }

    pub(super) fn is_broken(&self) -> bool {
        self.health() == HealthSignal::Broken
    }

    /// Returns the product of the factors of all ranking signals.
    pub(super) fn factor(&self) -> f32 {
        self.static_factor * f32::from_bits(self.use_factor.load(Ordering::Relaxed)) * self.health().factor()
    }
}

impl Clone for ScoringData {
    fn clone(&self) -> Self {
        Self {
            lengths: self.lengths,
            is_inner: self.is_inner,
            health: AtomicU8::new(self.health.load(Ordering::Relaxed)),
            uses: AtomicU64::new(self.uses.load(Ordering::Relaxed)),
            use_factor: AtomicU32::new(self.use_factor.load(Ordering::Relaxed)),
            static_factor: self.static_factor,
        }
    }
}
