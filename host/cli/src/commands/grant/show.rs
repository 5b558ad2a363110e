//! The imports and grants of a plugin, and the grants of its other versions.

use serde::Serialize;

use super::link_targets::link_targets;
use super::needs::is_met;
use super::requests;
use crate::failure::Failure;
use crate::output::page::{FAINT, Page, TITLE, visible};
use crate::output::printer::{Format, Printer};
use toolwit::Error;
use toolwit::grants::{EffectiveRights, GrantScope, stale_grants};
use toolwit::registry::{EnvironmentNeed, Manifest, RequestedPermissions};
use toolwit::sandbox::{GrantsFile, Plugin};

/// A grant that applies to this version of the plugin. Rules are omitted if the component does not import their
/// capability.
#[derive(Serialize)]
struct ShownGrant {
    scope: GrantScope,
    /// Whether a grant for one call or one conversation has been used.
    #[serde(rename = "used")]
    is_used: bool,
    rules: Vec<String>,
}

impl ShownGrant {
    /// Describes each rule. Adds the scope of the grant, except for `Always`, and whether the grant has been used.
    fn lines(&self) -> impl Iterator<Item = String> {
        let note = match (self.scope, self.is_used) {
            (GrantScope::Always, _) => String::new(),
            (scope, false) => format!(" ({scope})"),
            (scope, true) => format!(" ({scope}, used)"),
        };
        self.rules.iter().map(move |rule| format!("{rule}{note}"))
    }
}

/// Prints the imports of a plugin, the values that its manifest requires, the permissions that its package requests, and its grants.
pub(super) fn print(
    printer: Printer,
    plugin: &Plugin,
    manifest: Option<&Manifest>,
    requested: Option<&RequestedPermissions>,
    file: &GrantsFile,
) -> Result<(), Failure> {
    let grants = file.read().map_err(Error::from)?;
    let digest = &plugin.inspection().digest;
    let rules_of = |grant| {
        EffectiveRights::of_grants(plugin.declared_capabilities(), [grant])
            .rules
            .describe()
    };
    let mut shown_grants = Vec::new();
    for grant in grants.grants.iter().filter(|grant| grant.is_for(plugin.name(), digest)) {
        shown_grants.push(ShownGrant {
            scope: grant.scope,
            is_used: grant.scope != GrantScope::Always && file.is_used(grant).map_err(Error::from)?,
            rules: rules_of(grant),
        });
    }
    let effective = EffectiveRights::new(plugin.declared_capabilities(), &grants, plugin.name(), digest);
    let stale = stale_grants(&grants, plugin.name(), digest);
    let stale_rules: Vec<String> = stale.into_iter().flat_map(rules_of).collect();
    let requests = requested.map_or_else(Vec::new, |requested| requests::compare_requests(requested, &effective));
    let omitted_requests = requested.map_or(0, |requested| requested.omitted);
    let needs = manifest.map_or(&[][..], |manifest| &manifest.environment);
    if printer.format() == Format::Json {
        let needs = needs.iter().map(|need| {
            serde_json::json!({
                "name": need.name, "description": need.description, "required": need.required,
                "met": is_met(need, &effective),
            })
        });
        let unused = shown_grants.iter().filter(|grant| !grant.is_used);
        return printer.document(&serde_json::json!({
            "plugin": plugin.name(),
            "digest": digest,
            "declared": plugin.declared_capabilities(),
            "needs": needs.collect::<Vec<_>>(),
            "requests": requests,
            "requests_omitted": omitted_requests,
            "has": unused.flat_map(|grant| &grant.rules).collect::<Vec<_>>(),
            "grants": shown_grants,
            "other_versions_had": stale_rules,
        }));
    }
    let mut page = Page::new();
    page.styled(TITLE, visible(plugin.name()))
        .text("  ")
        .styled(FAINT, digest)
        .end();
    page.spaces(2).text("imports: ").text(imports_text(plugin)).end();
    for need in needs {
        page.spaces(2)
            .text("needs: ")
            .text(describe_need(need, &effective))
            .end();
    }
    requests::write_requests(&mut page, &requests, omitted_requests);
    let grant_lines: Vec<_> = shown_grants.iter().flat_map(ShownGrant::lines).collect();
    for (label, lines) in [("has", &grant_lines), ("another version had", &stale_rules)] {
        for line in lines {
            page.spaces(2).text(label).text(": ").text(visible(line)).end();
        }
    }
    for (path, target) in link_targets(&effective.rules) {
        let (path, target) = (visible(path), visible(target));
        page.spaces(2).text(path).text(" leads to ").text(target).end();
    }
    if grant_lines.is_empty() {
        page.spaces(2).text("has: nothing").end();
    }
    printer.print_page(&page)
}

/// Lists the capabilities that the component imports.
fn imports_text(plugin: &Plugin) -> String {
    let capabilities = plugin.declared_capabilities().capabilities().iter();
    let names: Vec<_> = capabilities
        .map(|capability| format!("{capability:?}").to_lowercase())
        .collect();
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(", ")
    }
}

/// Describes a value that the manifest requires, and whether it is granted.
fn describe_need(need: &EnvironmentNeed, effective: &EffectiveRights) -> String {
    let mut text = need.name.clone();
    match need.description.trim() {
        "" => {}
        description => text.push_str(&format!(" ({description})")),
    }
    text.push_str(match (is_met(need, effective), need.required) {
        (true, _) => ", which is granted",
        (false, true) => ", which is missing",
        (false, false) => ", which is optional and missing",
    });
    text
}
