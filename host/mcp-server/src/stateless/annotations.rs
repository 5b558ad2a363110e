//! The annotations of the fixed list of tools.

use rmcp::model::Tool as WireTool;

use super::catalog::{Catalog, FixedTool, Target};
use crate::principal::Principal;
use crate::wire;
use toolwit::Arguments;
use toolwit::tool::{Effect, EffectClass};

/// Returns the tools of the list, annotated with the effects that calls would currently have. A changed grant can
/// change the effect.
pub(super) async fn with_annotations(catalog: &Catalog, principal: &Principal) -> Vec<WireTool> {
    let mut tools = Vec::with_capacity(catalog.listed().len());
    for listed in catalog.listed() {
        let mut listed = listed.clone();
        if let Some(tool) = catalog.tool(&listed.name) {
            listed.annotations = Some(wire::annotations(effect(catalog, principal, tool).await));
        }
        tools.push(listed);
    }
    tools
}

/// Returns the effect of a tool under the policy of a principal. The effect of `call_tool` is unknown.
async fn effect(catalog: &Catalog, principal: &Principal, fixed: &FixedTool) -> Effect {
    let plugin = |owner: &str| catalog.packages.package(owner).and_then(|package| package.plugin());
    let effect = match (&fixed.target, &fixed.tool) {
        (Target::Search | Target::Facade(_), _) => return Effect::declared(Some(EffectClass::Read)),
        (Target::Call, _) | (_, None) => return Effect::default(),
        (Target::Method(method), Some(_)) => match plugin(&method.kind.plugin) {
            Some(plugin) => plugin.access(&fixed.definition, principal.context()).await.effect,
            None => Effect::default(),
        },
        (Target::Tool(_), Some(tool)) => tool.access(&Arguments::new(), principal.context()).await.effect,
    };
    match &fixed.tool {
        Some(tool) => principal.approvals().effect(&**tool, effect),
        None => effect,
    }
}
