//! Recognizes the exported interfaces through which components of other hosts ([ACT](https://actcore.dev) and
//! [IronClaw](https://github.com/nearai/ironclaw)) list and call tools, and checks the types of their functions.

use semver::{Version, VersionReq};

use crate::values::dynamic_export::{ForeignContract, NearResponse};

/// The interface of ACT whose functions list and call tools, with the versions that the host supports.
const ACT_TOOLS: (&str, &str) = ("act:tools/tool-provider", ">=0.1.0, <0.3.0");

/// The interface of IronClaw whose functions describe and call one tool, with the versions that the host supports.
const NEAR_TOOL: (&str, &str) = ("near:agent/tool", ">=0.2.0, <0.5.0");

/// The other interfaces that components of ACT and IronClaw export, with the reason why this host does not call them.
const UNSUPPORTED_INTERFACES: [(&str, &str); 6] = [
    (
        "act:sessions/session-provider",
        "sessions of ACT are not supported: each call has a fresh instance",
    ),
    (
        "act:sessions-sync/session-provider-sync",
        "sessions of ACT are not supported: each call has a fresh instance",
    ),
    (
        "act:tools-sync/tool-provider-sync",
        "hosts do not call this interface: compose the component with the adapter `act:shim-tools-sync` of ACT",
    ),
    ("act:events/event-provider", "events of ACT are not supported"),
    ("act:resources/resource-provider", "resources of ACT are not supported"),
    ("near:agent/channel", "channels of IronClaw are not tools"),
];

/// An exported interface that another host defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContractInterface {
    /// [`ACT_TOOLS`] in a supported version.
    Act,
    /// [`NEAR_TOOL`] in a supported version.
    Near,
    /// An interface, or a version of an interface, that this host does not call. Contains the reason.
    Unsupported(&'static str),
}

/// The reason why this host does not call an unsupported version of [`ACT_TOOLS`].
const UNSUPPORTED_ACT_VERSION: &str =
    "this host runs the versions 0.1 and 0.2 of `act:tools`: build the component against one of them";

/// The reason why this host does not call an unsupported version of [`NEAR_TOOL`].
const UNSUPPORTED_NEAR_VERSION: &str =
    "this host runs the versions 0.2 to 0.4 of `near:agent`: build the component against one of them";

impl ContractInterface {
    /// Recognizes an export by its name. `None` for an interface that the constants of this module do not list.
    pub(super) fn of(export: &str) -> Option<Self> {
        let (interface, version) = export.split_once('@').unwrap_or((export, ""));
        let is_version_in = |versions: &str| {
            let range = VersionReq::parse(versions);
            range.is_ok_and(|range| Version::parse(version).is_ok_and(|version| range.matches(&version)))
        };
        if interface == ACT_TOOLS.0 {
            return Some(if is_version_in(ACT_TOOLS.1) {
                Self::Act
            } else {
                Self::Unsupported(UNSUPPORTED_ACT_VERSION)
            });
        }
        if interface == NEAR_TOOL.0 {
            return Some(if is_version_in(NEAR_TOOL.1) {
                Self::Near
            } else {
                Self::Unsupported(UNSUPPORTED_NEAR_VERSION)
            });
        }
        let (_, reason) = UNSUPPORTED_INTERFACES.iter().find(|(name, _)| *name == interface)?;
        Some(Self::Unsupported(reason))
    }

    /// Returns the names of the functions that the host calls.
    pub(super) fn function_names(self) -> &'static [&'static str] {
        match self {
            Self::Act => &["list-tools", "call-tool"],
            Self::Near => &["schema", "description", "execute"],
            Self::Unsupported(_) => &[],
        }
    }

    /// Returns the contract if functions with these signatures implement it. `first_index` is the index of the first function
    /// in `Shape::functions`.
    pub(super) fn implemented_contract(self, signatures: &[String], first_index: usize) -> Option<ForeignContract> {
        match (self, signatures) {
            (Self::Act, [list, call]) if *list == act_list_signature() && *call == act_call_signature() => {
                Some(ForeignContract::Act {
                    list: first_index,
                    call: first_index + 1,
                })
            }
            (Self::Near, [schema, description, execute])
                if schema == RETURNS_STRING && description == RETURNS_STRING =>
            {
                let response = match execute.strip_prefix(NEAR_EXECUTE_PARAMS)? {
                    NEAR_FIELDS_RESPONSE => NearResponse::Fields,
                    NEAR_OUTCOME_RESPONSE => NearResponse::Outcome,
                    _ => return None,
                };
                Some(ForeignContract::Near {
                    schema: first_index,
                    description: first_index + 1,
                    execute: first_index + 2,
                    response,
                })
            }
            _ => None,
        }
    }
}

// The required signatures of the functions, in the format of the module `signature`.
const RETURNS_STRING: &str = "()->string";
const NEAR_EXECUTE_PARAMS: &str = "(record{params:string,context:option<string>})->";
const NEAR_FIELDS_RESPONSE: &str = "record{output:option<string>,error:option<string>}";
const NEAR_OUTCOME_RESPONSE: &str = "variant{success:string,failure:record{kind:enum{auth-required,input,output-too-large,\
                            executor,network-denied,client,operation-failed},code:option<string>,message:option<string>}}";

const METADATA_TYPE: &str = "list<tuple<string,list<u8>>>";
const LOCALIZED_TYPE: &str = "variant{plain:string,localized:list<tuple<string,string>>}";

fn act_error_type() -> String {
    format!("record{{kind:string,message:{LOCALIZED_TYPE},metadata:{METADATA_TYPE}}}")
}

fn act_list_signature() -> String {
    let tool =
        format!("record{{name:string,description:{LOCALIZED_TYPE},parameters-schema:string,metadata:{METADATA_TYPE}}}");
    let response = format!("record{{metadata:{METADATA_TYPE},tools:list<{tool}>}}");
    format!("({METADATA_TYPE})->result<{response},{}>", act_error_type())
}

fn act_call_signature() -> String {
    let content_part = format!("record{{data:list<u8>,mime-type:option<string>,metadata:{METADATA_TYPE}}}");
    let event = format!("variant{{content:{content_part},error:{}}}", act_error_type());
    format!("(string,list<u8>,{METADATA_TYPE})->variant{{immediate:list<{event}>,streaming:stream<{event}>}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supported_and_unsupported_interfaces_are_recognized() {
        for (export, interface) in [
            ("act:tools/tool-provider@0.1.0", Some(ContractInterface::Act)),
            ("act:tools/tool-provider@0.2.3", Some(ContractInterface::Act)),
            (
                "act:tools/tool-provider@0.3.0",
                Some(ContractInterface::Unsupported(UNSUPPORTED_ACT_VERSION)),
            ),
            (
                "act:tools/tool-provider",
                Some(ContractInterface::Unsupported(UNSUPPORTED_ACT_VERSION)),
            ),
            ("near:agent/tool@0.3.0", Some(ContractInterface::Near)),
            ("near:agent/tool@0.4.1", Some(ContractInterface::Near)),
            (
                "near:agent/tool@0.5.0",
                Some(ContractInterface::Unsupported(UNSUPPORTED_NEAR_VERSION)),
            ),
            ("near:agent/other@0.3.0", None),
            ("act:events/types@0.1.0", None),
            ("act:core/types@0.4.0", None),
        ] {
            assert_eq!(ContractInterface::of(export), interface, "{export}");
        }
        for (name, reason) in UNSUPPORTED_INTERFACES {
            let unsupported = Some(ContractInterface::Unsupported(reason));
            assert_eq!(ContractInterface::of(&format!("{name}@0.1.0")), unsupported);
        }
    }
}
