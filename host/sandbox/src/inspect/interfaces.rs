//! The interfaces that the host implements, by name and version. Inspection checks imports against these tables, and the module
//! `link` implements the interfaces.

use semver::{Version, VersionReq};

/// The version of the package `toolwit:plugin` that the host implements.
pub(crate) const PLUGIN_VERSION: &str = "0.1.2";

/// The prefix of every interface name of the package `toolwit:plugin`.
pub(crate) const PLUGIN_PACKAGE: &str = "toolwit:plugin/";

/// The interfaces of `toolwit:plugin` that a component can import.
const PLUGIN_INTERFACES: [&str; 7] = [
    "toolwit:plugin/ask",
    "toolwit:plugin/blackboard",
    "toolwit:plugin/context",
    "toolwit:plugin/http",
    "toolwit:plugin/log",
    "toolwit:plugin/output",
    "toolwit:plugin/tools",
];

/// The versions of `wasi:config/store` that toolchains import. The versions have the same functions and types, but a draft is not
/// semver-compatible with any other version, so each version is listed.
pub(crate) const CONFIG_STORES: [&str; 3] = [
    "wasi:config/store@0.2.0-draft",
    "wasi:config/store@0.2.0-rc.1",
    "wasi:config/store@0.2.0",
];

/// The version of `wasi:keyvalue/store` that toolchains import.
pub(crate) const KEYVALUE_STORES: [&str; 1] = ["wasi:keyvalue/store@0.2.0-draft2"];

/// The versions of `wasi:logging/logging` that toolchains import. The proposal has no release.
pub(crate) const LOGGERS: [&str; 3] = [
    "wasi:logging/logging",
    "wasi:logging/logging@0.1.0-draft",
    "wasi:logging/logging@0.1.0",
];

/// The interface that components of another host, [IronClaw](https://github.com/nearai/ironclaw), import.
pub(crate) const NEAR_HOST: &str = "near:agent/host";

/// The versions of `near:agent/host` that `link` adds to the linker, one for each set of semver-compatible versions. Versions 0.2
/// and 0.3 have the same functions and types.
pub(crate) const NEAR_HOST_VERSIONS: [&str; 3] = ["0.2.0", "0.3.0", "0.4.1"];

/// All versions of `near:agent/host` that the host implements. Each is compatible with one of [`NEAR_HOST_VERSIONS`].
const NEAR_HOST_RANGE: &str = ">=0.2.0, <0.5.0";

/// The versions of WASI 0.2 that the host implements.
pub(crate) const WASI2_VERSIONS: &str = ">=0.2.0, <0.3.0";

/// The versions of WASI 0.3 that the host implements.
const WASI3_VERSIONS: &str = ">=0.3.0, <0.4.0";

/// The interfaces of WASI 0.2 that a component can import. Importing an interface grants nothing: each implementation denies every
/// access that is not granted.
pub(super) const WASI2_INTERFACES: [&str; 29] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:http/outgoing-handler",
    "wasi:http/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/network",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
];

/// The interfaces of WASI 0.3 that a component can import if the operator has enabled WASI 0.3. An interface is listed only if the
/// host can apply the same checks as to its predecessor in WASI 0.2.
const WASI3_INTERFACES: [&str; 23] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/types",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/system-clock",
    "wasi:clocks/types",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:http/client",
    "wasi:http/types",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/types",
];

/// The condition under which the host offers an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InterfaceOffer {
    /// The host offers the interface to every component.
    Always,
    /// The interface belongs to WASI 0.3, which the operator has to enable.
    WithWasi3,
    /// The host does not offer the interface.
    Never,
}

/// Returns the condition under which the host offers an interface to a component that imports it by this name, such as
/// `wasi:io/streams@0.2.6`.
pub(crate) fn offer_of(import: &str) -> InterfaceOffer {
    if CONFIG_STORES.contains(&import) || KEYVALUE_STORES.contains(&import) || LOGGERS.contains(&import) {
        return InterfaceOffer::Always;
    }
    let Some((interface, version)) = import.split_once('@') else {
        return InterfaceOffer::Never;
    };
    let Ok(version) = Version::parse(version) else {
        return InterfaceOffer::Never;
    };
    let is_in = |versions: &str| {
        version.pre.is_empty() && VersionReq::parse(versions).is_ok_and(|range| range.matches(&version))
    };
    if PLUGIN_INTERFACES.contains(&interface) && is_compatible_plugin_version(&version)
        || WASI2_INTERFACES.contains(&interface) && is_in(WASI2_VERSIONS)
        || interface == NEAR_HOST && is_in(NEAR_HOST_RANGE)
    {
        InterfaceOffer::Always
    } else if WASI3_INTERFACES.contains(&interface) && is_in(WASI3_VERSIONS) {
        InterfaceOffer::WithWasi3
    } else {
        InterfaceOffer::Never
    }
}

/// Returns whether a component that was built against this version of `toolwit:plugin` runs on this host: the major and minor
/// versions are equal, the patch version is not newer than the host's, and the version is not a pre-release.
pub(crate) fn is_compatible_plugin_version(version: &Version) -> bool {
    Version::parse(PLUGIN_VERSION).is_ok_and(|host| {
        version.pre.is_empty() && version.major == host.major && version.minor == host.minor && *version <= host
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compatible_versions_are_offered_and_others_are_not() {
        for name in [
            "wasi:cli/environment@0.2.0",
            "wasi:http/types@0.2.12",
            "wasi:sockets/tcp@0.2.6",
            "toolwit:plugin/output@0.1.0",
            "toolwit:plugin/output@0.1.1",
            "toolwit:plugin/ask@0.1.2",
            "near:agent/host@0.3.0",
            "near:agent/host@0.4.0",
            "wasi:logging/logging@0.1.0-draft",
        ] {
            assert_eq!(offer_of(name), InterfaceOffer::Always, "{name}");
        }
        for name in [
            "wasi:cli/environment@0.3.0",
            "wasi:http/client@0.3.1",
            "wasi:clocks/system-clock@0.3.0",
        ] {
            assert_eq!(offer_of(name), InterfaceOffer::WithWasi3, "{name}");
        }
        for name in [
            "wasi:cli/environment@0.4.0",
            "wasi:cli/environment@0.3.0-rc-2026-01-01",
            "wasi:http/handler@0.3.0",
            "wasi:cli/environment",
            "wasi:nn/tensor@0.2.0",
            "toolwit:plugin/output@0.1.3",
            "toolwit:plugin/output@0.2.0",
            "toolwit:plugin/dynamic@0.1.0",
            "near:agent/host",
            "near:agent/host@0.5.0",
            "near:agent/channel-host@0.3.0",
            "a:b/c@0.2.0",
            "x",
        ] {
            assert_eq!(offer_of(name), InterfaceOffer::Never, "{name}");
        }
    }
}
