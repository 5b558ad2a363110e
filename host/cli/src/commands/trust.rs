//! `toolwit trust`: shows the grants that a project proposes, and accepts them.

use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::project_grants::{ProjectGrants, Trust};
use crate::output::page::{Page, TITLE};
use crate::output::printer::{Format, Printer};
use toolwit::grants::{GrantedVersion, Grants};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit trust                shows the grants that the project in the current directory proposes
  toolwit trust --accept       accepts them as they are now";

/// Show the grants that a project proposes, or accept them
///
/// A project proposes grants in a file that its `toolwit.toml` names: [grants] file = \"grants.toml\". They grant nothing until they
/// are accepted. Accepted grants are a copy in the configuration directory and replace the user's grants in this directory. A later
/// change of the project's file has no effect until it is accepted, too.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TrustProject {
    /// Accept the grants as they are now
    #[arg(long)]
    accept: bool,
}

impl TrustProject {
    pub(crate) fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let Some(project) = ProjectGrants::find()? else {
            let message = "the current directory has no `toolwit.toml` with a table `[grants]`";
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("add `[grants]` with `file = \"grants.toml\"` to `toolwit.toml`")
                .into());
        };
        let proposed = project.proposed.read().map_err(Error::from)?;
        if self.accept {
            project.accept()?;
        }
        let trust = project.trust();
        if printer.format() == Format::Json {
            let grants: Vec<_> = proposed
                .grants
                .iter()
                .map(|grant| json!({"plugin": grant.plugin, "rules": grant.rules.describe()}))
                .collect();
            printer.document(&json!({
                "file": project.proposed.path(), "accepted": trust == Trust::Accepted, "grants": grants,
            }))?;
            return Ok(Exit::Success);
        }
        printer.data(&page(&proposed))?;
        match trust {
            Trust::Accepted => printer.message(Page::new().text("the grants are accepted").end()),
            _ => printer.hint("`toolwit trust --accept` accepts these grants for this directory"),
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
        for rule in grant.rules.describe() {
            page.indent(2).text(rule).end();
        }
    }
    page
}
