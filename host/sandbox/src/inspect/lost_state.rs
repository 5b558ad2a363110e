//! Finds components that seem to keep state between calls, although each of their calls has a fresh instance.
//!
//! Whether the code of a component writes to its memory says nothing, because the runtime of every language does. But a function that
//! returns nothing is useless if nothing remains of its call: the component then either changes something outside of its instance,
//! or its author expects the instance to be kept.

use super::declared_capabilities::{Capability, DeclaredCapabilities};
use super::inspection::Inspection;
use crate::values::types::{Function, FunctionKind, WitType};

/// The capabilities with which a call can change something outside of its instance. Files are not among them, because the standard
/// libraries of most languages import them without a need.
const CHANGING_CAPABILITIES: [Capability; 4] = [
    Capability::Http,
    Capability::Keyvalue,
    Capability::Tools,
    Capability::Blackboard,
];

/// The interfaces through which a call shows something to the user.
const SHOWING_IMPORTS: [&str; 2] = ["toolwit:plugin/output", "toolwit:plugin/ask"];

/// The first words of the names of functions that are useful without a result, because they fail for a wrong argument.
const CHECKING_VERBS: [&str; 5] = ["assert", "check", "ensure", "validate", "verify"];

impl Inspection {
    /// Returns the name of a function whose effect seems to be lost when its call ends: it returns nothing, and the component can
    /// change nothing outside of its instance. `None` if there is no such function, or if the instance is kept between calls.
    #[must_use]
    pub fn lost_state(&self) -> Option<&str> {
        if self.shape.is_stateful() {
            return None;
        }
        let names: Vec<_> = self
            .imports
            .iter()
            .flat_map(|import| import.declaring_names())
            .collect();
        let declared = DeclaredCapabilities::from_imports(names.iter().map(String::as_str));
        let has_effect = CHANGING_CAPABILITIES.iter().any(|capability| declared.has(*capability))
            || names.iter().any(|name| SHOWING_IMPORTS.contains(&name.as_str()));
        if has_effect {
            return None;
        }
        let functions = || {
            self.shape
                .functions
                .iter()
                .filter(|function| function.kind == FunctionKind::Free)
        };
        // A component that imports files may write one. It keeps state if another function returns what was passed before.
        let has_reader = functions().any(|function| function.params.is_empty() && !returns_nothing(function));
        if declared.has(Capability::Files) && !has_reader {
            return None;
        }
        let mut writers = functions()
            .filter(|function| !function.params.is_empty() && returns_nothing(function) && !is_check(function));
        writers.next().map(|function| function.name.as_str())
    }
}

/// Returns whether a function has no result, or a result without a value.
fn returns_nothing(function: &Function) -> bool {
    matches!(function.result, None | Some(WitType::Result { ok: None, .. }))
}

fn is_check(function: &Function) -> bool {
    let verb = function.name.split('-').next().unwrap_or_default();
    CHECKING_VERBS.contains(&verb)
}
