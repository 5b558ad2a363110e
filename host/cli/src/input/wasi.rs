//! The option that selects the versions of WASI.

use serde::{Deserialize, Serialize};

use super::project_trust::ProjectTrust;
use toolwit::Error;
use toolwit::sandbox::WasiVersions;

/// Selects the versions of WASI that components can import.
#[derive(Clone, Copy, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct WasiFlags {
    /// Load components for WASI 0.3, for which wasmtime publishes no security patches [default: the setting of the
    /// project]
    #[arg(long)]
    wasi_p3: bool,
}

impl WasiFlags {
    /// Returns whether the option enables WASI 0.3.
    pub(crate) fn is_wasi3_enabled(self) -> bool {
        self.wasi_p3
    }

    /// Returns the option for another command line.
    pub(crate) fn to_arguments(self) -> Option<String> {
        self.wasi_p3.then(|| "--wasi-p3".to_owned())
    }

    /// Returns the versions that components can import: WASI 0.2, and also WASI 0.3 if this option or the accepted
    /// configuration of the project enables it.
    pub(crate) fn versions(self) -> Result<WasiVersions, Error> {
        let is_enabled = self.wasi_p3 || ProjectTrust::find()?.is_wasi3_enabled();
        Ok(if is_enabled {
            WasiVersions::Wasi2And3
        } else {
            WasiVersions::Wasi2
        })
    }
}
