//! What a plugin asks for, what it has, and what its other versions had.

use super::needs::is_met;
use crate::failure::Failure;
use crate::output::page::{FAINT, Page, TITLE};
use crate::output::printer::{Format, Printer};
use toolwit::grants::{ClockRule, EffectiveRights, Grants, RandomRule, stale_grants};
use toolwit::limits::ByteCount;
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
    let has = rules(&effective);
    let had: Vec<String> = stale_grants(grants, plugin.name(), digest)
        .into_iter()
        .flat_map(|grant| rules(&EffectiveRights::of_grants(plugin.declared(), [grant])))
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
            "asks": plugin.declared(),
            "needs": needs.collect::<Vec<_>>(),
            "has": has,
            "other_versions_had": had,
        }));
    }
    let mut page = Page::new();
    page.styled(TITLE, plugin.name()).text("  ").styled(FAINT, digest).end();
    page.indent(2).text("imports: ").text(imports(plugin)).end();
    for need in needs {
        page.indent(2).text("needs: ").text(told(need, &effective)).end();
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

/// What its component asks for.
fn imports(plugin: &Plugin) -> String {
    let asked = plugin.declared().capabilities().iter();
    let asked: Vec<_> = asked.map(|asked| format!("{asked:?}").to_lowercase()).collect();
    match asked.is_empty() {
        true => "nothing".to_owned(),
        false => asked.join(", "),
    }
}

/// What its manifest asks for.
fn told(need: &EnvironmentNeed, effective: &EffectiveRights) -> String {
    let mut told = need.name.clone();
    match need.description.trim() {
        "" => {}
        description => told.push_str(&format!(" ({description})")),
    }
    told.push_str(match (is_met(need, effective), need.required) {
        (true, _) => ", which it has",
        (false, true) => ", which nothing gives it",
        (false, false) => ", which nothing gives it; it can do without",
    });
    told
}

/// Tells each rule in a line. Values are nobody's business.
fn rules(effective: &EffectiveRights) -> Vec<String> {
    let mut lines: Vec<String> = effective.http.iter().map(|rule| format!("http {rule}")).collect();
    lines.extend(effective.files.iter().map(|rule| format!("files {rule}")));
    lines.extend(effective.env.iter().map(|rule| format!("env {}", rule.name)));
    lines.extend(effective.secrets.iter().map(|rule| format!("secret {rule}")));
    lines.extend(effective.config.keys().map(|key| format!("config {key}")));
    let keyvalue = effective.keyvalue.iter();
    lines.extend(keyvalue.map(|rule| format!("keyvalue {}", ByteCount(rule.quota_bytes))));
    lines.extend(effective.tools.iter().map(|tool| format!("tool {tool}")));
    lines.extend(effective.context.iter().map(|key| format!("context {key}")));
    lines.extend(effective.blackboard.iter().map(|access| format!("blackboard {access}")));
    if let Some(ClockRule::Frozen(second)) = effective.clock {
        lines.push(format!("clock frozen at {second} s after 1970"));
    }
    if let Some(RandomRule::Frozen(seed)) = effective.random {
        lines.push(format!("random bytes from the seed {seed}"));
    }
    lines
}
