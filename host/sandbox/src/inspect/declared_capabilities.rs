//! The capabilities that a component declares by its imports.

use serde::Serialize;

/// A kind of access that can be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Capability {
    /// HTTP requests.
    Http,
    /// Files and directories.
    Files,
    /// Environment variables, including secrets that are exposed in them.
    Env,
    /// Settings.
    Config,
    /// The key–value store.
    Keyvalue,
    /// Calls of other tools.
    Tools,
    /// Values in the context of a call, such as the tenant.
    Context,
    /// The blackboard: objects that the tools of a conversation share.
    Blackboard,
    /// Questions to the person who uses the host.
    Ask,
    /// Clocks.
    Clock,
    /// Random bytes.
    Random,
}

/// The imports that declare a capability: interfaces, and single functions of an interface (`INTERFACE#FUNCTION`). A component
/// can use a capability only if it imports one of them.
const DECLARING_IMPORTS: [(&str, Capability); 21] = [
    ("near:agent/host#http-request", Capability::Http),
    ("near:agent/host#now-millis", Capability::Clock),
    ("near:agent/host#tool-invoke", Capability::Tools),
    ("near:agent/host#workspace-read", Capability::Files),
    ("toolwit:plugin/ask", Capability::Ask),
    ("toolwit:plugin/blackboard", Capability::Blackboard),
    ("toolwit:plugin/context", Capability::Context),
    ("toolwit:plugin/http", Capability::Http),
    ("toolwit:plugin/tools", Capability::Tools),
    ("wasi:cli/environment", Capability::Env),
    ("wasi:clocks/monotonic-clock", Capability::Clock),
    ("wasi:clocks/system-clock", Capability::Clock),
    ("wasi:clocks/wall-clock", Capability::Clock),
    ("wasi:config/store", Capability::Config),
    ("wasi:filesystem/preopens", Capability::Files),
    ("wasi:http/client", Capability::Http),
    ("wasi:http/outgoing-handler", Capability::Http),
    ("wasi:keyvalue/store", Capability::Keyvalue),
    ("wasi:random/insecure", Capability::Random),
    ("wasi:random/insecure-seed", Capability::Random),
    ("wasi:random/random", Capability::Random),
];

/// The capabilities that a component declares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct DeclaredCapabilities {
    capabilities: Vec<Capability>,
}

impl DeclaredCapabilities {
    /// Derives the capabilities from the names of a component's imports: `INTERFACE`, `INTERFACE@VERSION` or
    /// `INTERFACE#FUNCTION`. Ignores imports that declare no capability.
    pub fn from_imports<'a>(imports: impl IntoIterator<Item = &'a str>) -> Self {
        let mut capabilities: Vec<_> = imports
            .into_iter()
            .filter_map(|import| {
                let unversioned = import.split('@').next().unwrap_or_default();
                DECLARING_IMPORTS
                    .iter()
                    .find(|(name, _)| *name == unversioned)
                    .map(|(_, capability)| *capability)
            })
            .collect();
        capabilities.sort();
        capabilities.dedup();
        Self { capabilities }
    }

    /// Returns the value for a component that declares all capabilities.
    #[must_use]
    pub fn all() -> Self {
        Self::from_imports(DECLARING_IMPORTS.map(|(name, _)| name))
    }

    /// Returns whether the component declares a capability.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// Returns the key under which a grant lists values for the component, such as an address. The key is `config` if the component
    /// imports settings and not the environment. Otherwise, the key is `env`.
    #[must_use]
    pub fn value_grant_key(&self) -> &'static str {
        if self.has(Capability::Config) && !self.has(Capability::Env) {
            "config"
        } else {
            "env"
        }
    }

    /// Returns the declared capabilities, sorted and without duplicates.
    #[must_use]
    pub fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_of_random_numbers_declares_randomness() {
        for interface in ["random", "insecure", "insecure-seed"] {
            let import = format!("wasi:random/{interface}@0.2.6");
            let declared = DeclaredCapabilities::from_imports([import.as_str()]);
            assert!(declared.has(Capability::Random), "{import}");
        }
    }
}
