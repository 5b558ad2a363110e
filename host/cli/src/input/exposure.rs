//! Options for the exposure of tools to a model, and for their delivery.

use serde::{Deserialize, Serialize};
use toolwit::Exposure;
use toolwit::model::ToolDelivery;

/// The tools that a model sees at the start; see [`Exposure`].
#[derive(Clone, Copy, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ExposureFlag {
    /// All tools of all plugins
    Flat,
    /// One facade tool per interface, which reveals its tools when called
    Facade,
    /// Tools that match the prompt or a search of the model
    Search,
}

/// The way in which tools are delivered to a model; see [`ToolDelivery`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DeliveryFlag {
    /// Declared in a list, to which injected tools are added
    List,
    /// Injected tools are called through one tool, so that the list never changes
    Gateway,
    /// Deferred by the provider until the model searches for them (anthropic, openai-responses)
    Native,
}

impl From<DeliveryFlag> for ToolDelivery {
    fn from(flag: DeliveryFlag) -> Self {
        match flag {
            DeliveryFlag::List => Self::List,
            DeliveryFlag::Gateway => Self::Gateway,
            DeliveryFlag::Native => Self::Native,
        }
    }
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
