//! The annotations of the tools of a catalog.

use rmcp::model::Tool as WireTool;

use super::catalog::{Catalog, CatalogTool, Target};
use crate::principal::Principal;
use crate::wire;
use toolwit::Arguments;
use toolwit::tool::{Effect, EffectClass};

/// Returns the listed tools of a catalog, each annotated with the effect that a call would currently have. The effects are
/// not stored in the catalog, because a changed grant can change them.
pub(super) async fn annotated_tools(catalog: &Catalog, principal: &Principal) -> Vec<WireTool> {
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
async fn effect(catalog: &Catalog, principal: &Principal, catalog_tool: &CatalogTool) -> Effect {
    let definition = &catalog_tool.definition;
    let plugin = |owner: &str| catalog.packages.package(owner).and_then(|package| package.plugin());
    let effect = match (&catalog_tool.target, &catalog_tool.tool) {
        (Target::Search | Target::Facade(_), _) => return Effect::declared(Some(EffectClass::Read)),
        (Target::Call, _) | (_, None) => return Effect::default(),
        (Target::Method(method), Some(_)) => match plugin(&method.kind.plugin) {
            Some(plugin) => plugin.access(definition, principal.context()).await.effect,
            None => Effect::default(),
        },
        (Target::Tool(_), Some(tool)) => tool.access(&Arguments::new(), principal.context()).await.effect,
    };
    match &catalog_tool.tool {
        Some(tool) => principal.approvals().effect(&**tool, effect),
        None => effect,
    }
}
