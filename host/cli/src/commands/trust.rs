//! `toolwit trust`: shows the grants that a project proposes, and accepts them.

use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::project_grants::{ProjectGrants, Trust};
use crate::output::page::{Page, TITLE};
use crate::output::printer::{Format, Printer};
use toolwit::grants::{GrantRules, GrantedVersion, Grants, SecretSource};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit trust                    shows the grants that the project in the current directory proposes
  toolwit trust --accept 4f1c92d0  accepts them, if they are still those that were shown with this digest";

/// The number of characters of a digest that a hint shows, and the minimum for `--accept`.
const DIGEST_CHARS_SHOWN: usize = 16;
const DIGEST_CHARS_MIN: usize = 8;

/// Show the grants that a project proposes, or accept them
///
/// A project proposes grants in a file that its `toolwit.toml` names: `[grants] file = "grants.toml"`. They grant nothing until they
/// are accepted. Accepted grants are a copy in the configuration directory and replace the user's grants in this directory. A later
/// change of the project's file has no effect until it is accepted, too.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TrustProject {
    /// Accept the grants that were shown with this digest, or its first characters
    #[arg(long, value_name = "DIGEST")]
    accept: Option<String>,
}

impl TrustProject {
    pub(crate) fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let project = ProjectGrants::find()?;
        let Some(file) = project.proposed() else {
            let message = "the current directory has no `toolwit.toml` with a table `[grants]`";
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("add `[grants]` with `file = \"grants.toml\"` to `toolwit.toml`")
                .into());
        };
        let content = file.content().map_err(Error::from)?;
        let digest = content.digest();
        if let Some(shown) = &self.accept {
            if shown.len() < DIGEST_CHARS_MIN || !digest.starts_with(shown) {
                let message = format!("the project's grants do not have the digest `{shown}`");
                return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                    .with_suggestion("`toolwit trust` shows the grants and their digest")
                    .into());
            }
            project.accept(&content)?;
        }
        let proposed = content.grants();
        let trust = project.trust();
        if printer.format() == Format::Json {
            let grants: Vec<_> = proposed
                .grants
                .iter()
                .map(|grant| json!({"plugin": grant.plugin, "rules": grant.rules.describe(), "sources": sources(&grant.rules)}))
                .collect();
            printer.document(&json!({
                "file": file.path(), "digest": digest, "accepted": trust == Trust::Accepted, "grants": grants,
            }))?;
            return Ok(Exit::Success);
        }
        printer.data(&page(proposed))?;
        match trust {
            Trust::Accepted => printer.message(Page::new().text("the grants are accepted").end()),
            _ => printer.hint(format!(
                "`toolwit trust --accept {}` accepts these grants for this directory",
                &digest[..DIGEST_CHARS_SHOWN]
            )),
        }
        Ok(Exit::Success)
    }
}

fn page(proposed: &Grants) -> Page {
    let mut page = Page::new();
    for grant in &proposed.grants {
        page.styled(TITLE, &grant.plugin);
        match &grant.version {
            GrantedVersion::Any => page.text("  any version"),
            GrantedVersion::Digest(digest) => page.text("  ").text(digest),
        };
        page.text(format_args!("  {}", grant.scope)).end();
        for line in grant.rules.describe().into_iter().chain(sources(&grant.rules)) {
            page.indent(2).text(line).end();
        }
    }
    page
}

/// Describes where the values of a grant come from. Only this page shows them: the project proposes them, and the user who accepts
/// them has to know them. Quoted, so that a line break in a value cannot forge a line.
fn sources(rules: &GrantRules) -> Vec<String> {
    let env = rules.env.iter().map(|rule| match &rule.value {
        Some(value) => format!("env {} = {value:?}", rule.name),
        None => format!("env {} has the value of the host's environment", rule.name),
    });
    let config = rules
        .config
        .iter()
        .map(|(key, value)| format!("config {key} = {value:?}"));
    let of_host = rules
        .secrets
        .iter()
        .filter(|rule| rule.source == SecretSource::Environment);
    let secrets = of_host.map(|rule| format!("secret {} is a variable of the host's environment", rule.name));
    env.chain(config).chain(secrets).collect()
}
