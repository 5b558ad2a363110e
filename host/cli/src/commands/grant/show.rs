//! The imports and grants of a plugin, and the grants of its other versions.

use super::needs::is_met;
use crate::failure::Failure;
use crate::output::page::{FAINT, Page, TITLE};
use crate::output::printer::{Format, Printer};
use toolwit::grants::{EffectiveRights, Grants, stale_grants};
use toolwit::registry::{EnvironmentNeed, Manifest};
use toolwit::sandbox::Plugin;

pub(super) fn print(
    printer: Printer,
    plugin: &Plugin,
    manifest: Option<&Manifest>,
    grants: &Grants,
) -> Result<(), Failure> {
    let digest = &plugin.inspection().digest;
    let effective = EffectiveRights::new(plugin.declared(), grants, plugin.name(), digest);
    let has = effective.rules.describe();
    let had: Vec<String> = stale_grants(grants, plugin.name(), digest)
        .into_iter()
        .flat_map(|grant| EffectiveRights::of_grants(plugin.declared(), [grant]).rules.describe())
        .collect();
    let needs = manifest.map_or(&[][..], |manifest| &manifest.environment);
    if printer.format() == Format::Json {
        let needs = needs.iter().map(|need| {
            serde_json::json!({
                "name": need.name, "description": need.description, "required": need.required,
                "met": is_met(need, &effective),
            })
        });
        return printer.document(&serde_json::json!({
            "plugin": plugin.name(),
            "digest": digest,
            "declared": plugin.declared(),
            "needs": needs.collect::<Vec<_>>(),
            "has": has,
            "other_versions_had": had,
        }));
    }
    let mut page = Page::new();
    page.styled(TITLE, plugin.name()).text("  ").styled(FAINT, digest).end();
    page.indent(2).text("imports: ").text(imports(plugin)).end();
    for need in needs {
        page.indent(2).text("needs: ").text(describe(need, &effective)).end();
    }
    for (title, lines) in [("has", &has), ("another version had", &had)] {
        for line in lines {
            page.indent(2).text(title).text(": ").text(line).end();
        }
    }
    if has.is_empty() {
        page.indent(2).text("has: nothing").end();
    }
    printer.data(&page)
}

/// Lists the capabilities that the component imports.
fn imports(plugin: &Plugin) -> String {
    let declared = plugin.declared().capabilities().iter();
    let names: Vec<_> = declared.map(|one| format!("{one:?}").to_lowercase()).collect();
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(", ")
    }
}

/// Describes a requirement of the manifest, and whether it is met.
fn describe(need: &EnvironmentNeed, effective: &EffectiveRights) -> String {
    let mut text = need.name.clone();
    match need.description.trim() {
        "" => {}
        description => text.push_str(&format!(" ({description})")),
    }
    text.push_str(match (is_met(need, effective), need.required) {
        (true, _) => ", which is granted",
        (false, true) => ", which is not granted",
        (false, false) => ", which is not granted and optional",
    });
    text
}
