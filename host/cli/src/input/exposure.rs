//! The choice of tools that a model sees at the start.

use toolwit::Exposure;

/// The exposure of tools to the model.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ExposureFlag {
    /// All tools of all plugins
    Flat,
    /// One facade tool per interface, which reveals its tools when called
    Facade,
    /// Tools that match the prompt or a search of the model
    Search,
}

impl From<ExposureFlag> for Exposure {
    fn from(flag: ExposureFlag) -> Self {
        match flag {
            ExposureFlag::Flat => Self::Flat,
            ExposureFlag::Facade => Self::Facade,
            ExposureFlag::Search => Self::Search,
        }
    }
}
