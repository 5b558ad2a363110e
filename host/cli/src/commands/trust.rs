//! `toolwit trust`: shows the grants, limits and other settings that a project proposes, and accepts them.

use anstyle::Style;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::project_trust::{ProjectTrust, Proposal, Trust};
use crate::output::page::{Page, TITLE, visible};
use crate::output::printer::{Format, Printer};
use crate::shell::SuggestedCommand;
use toolwit::grants::{Grant, GrantRules, GrantedVersion, SecretSource};
use toolwit::sandbox::{GrantsContent, GrantsFile};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit trust                            show the proposal of the project in this directory
  toolwit trust --accept DIGEST            accept the proposal, if it still has this digest";

/// Show the grants, limits and MCP servers that a project proposes, or accept them
///
/// A project proposes grants in a file that its `toolwit.toml` names: `[grants] file = "grants.toml"`. The limits in
/// `toolwit.toml` that are above the defaults, its package index, its interceptors, WASI 0.3, and MCP servers, also
/// those of a `.mcp.json`, are proposals too. No proposal applies until it is accepted. Accepted grants are copied to
/// the configuration directory, and replace the user's grants in this directory. A changed proposal does not apply
/// until it is accepted again.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TrustProject {
    /// Accept the proposal with this digest, of 64 characters
    #[arg(long, value_name = "DIGEST")]
    accept: Option<String>,
}

impl TrustProject {
    pub(crate) fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let mut project = ProjectTrust::find()?;
        if !project.has_proposal() {
            let message = "the current directory has no `toolwit.toml` that proposes grants, limits above the defaults, a package index, interceptors, WASI 0.3 or MCP servers";
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("add `[grants]` with `file = \"grants.toml\"` to `toolwit.toml`")
                .into());
        }
        let proposal = project.proposal()?;
        let digest = proposal.digest();
        if let Some(accepted) = &self.accept {
            // A part of the digest is not enough: the author of a project could find another proposal with the same part.
            if *accepted != digest {
                let message = format!("the project's proposal does not have the digest `{accepted}`");
                return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                    .with_suggestion("`toolwit trust` shows the proposal and its full digest")
                    .into());
            }
            project.accept(&proposal)?;
        }
        let is_accepted = project.trust() == Trust::Accepted;
        if printer.format() == Format::Json {
            printer.document(&json!({
                "file": project.proposed_grants().map(GrantsFile::path),
                "digest": digest,
                "accepted": is_accepted,
                "grants": proposal.grants.iter().flat_map(grants_document).collect::<Vec<_>>(),
                "limits": proposal.limits.describe(),
                "index": proposal.index.as_ref().map(ToString::to_string),
                "wasi_p3": proposal.wasi_p3,
                "interceptors": proposal.interceptors.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "servers": proposal.servers.describe(),
            }))?;
            return Ok(Exit::Success);
        }
        printer.print_page(&proposal_page(&proposal))?;
        if is_accepted {
            printer.message(Page::new().text("the proposal is accepted").end());
        } else {
            let accept = SuggestedCommand::new("trust").option("accept", &digest);
            printer.hint(format_args!("`{accept}` accepts the proposal for this directory"));
        }
        Ok(Exit::Success)
    }
}

fn grants_document(grants: &GrantsContent) -> Vec<Value> {
    let document = |grant: &Grant| {
        json!({
            "plugin": grant.plugin, "rules": grant.rules.describe(), "sources": describe_values(&grant.rules),
        })
    };
    grants.grants().grants.iter().map(document).collect()
}

fn proposal_page(proposal: &Proposal) -> Page {
    let mut page = Page::new();
    for grant in proposal.grants.iter().flat_map(|grants| &grants.grants().grants) {
        page.styled(TITLE, visible(&grant.plugin));
        match &grant.version {
            GrantedVersion::Any => page.text("  any version"),
            GrantedVersion::Digest(digest) => page.text("  ").text(digest),
        };
        page.text(format_args!("  {}", grant.scope)).end();
        for line in grant.rules.describe().into_iter().chain(describe_values(&grant.rules)) {
            // The user must see the full rule before accepting it, with every character of it.
            page.block(2, Style::new(), &visible(line));
        }
    }
    if let Some(index) = &proposal.index {
        page.title("Package index");
        page.block(2, Style::new(), &visible(index));
    }
    if proposal.wasi_p3 {
        page.title("WASI 0.3, for which wasmtime publishes no security patches");
        page.spaces(2).text("sandbox.wasi_p3 = true").end();
    }
    if !proposal.interceptors.is_empty() {
        page.title("Interceptors, which see and can change every call that they wrap");
        for setting in &proposal.interceptors {
            page.block(2, Style::new(), &visible(setting));
        }
    }
    if !proposal.servers.is_empty() {
        page.title("MCP servers");
        for line in proposal.servers.describe() {
            page.block(2, Style::new(), &visible(line));
        }
    }
    if !proposal.limits.is_empty() {
        page.title("Limits above the defaults");
        for line in proposal.limits.describe() {
            page.block(2, Style::new(), &visible(line));
        }
    }
    page
}

/// Describes the environment variables and settings of a grant with their values, and the variables and secrets whose
/// values come from the host's environment. Other commands do not show these values. This command does, because the
/// project proposes them and the user must know them before accepting.
fn describe_values(rules: &GrantRules) -> Vec<String> {
    let env = rules.env.iter().map(|rule| match &rule.value {
        Some(value) => format!("env {} = {value:?}", rule.name),
        None => format!("env {} has the value of the host's environment", rule.name),
    });
    let config = rules
        .config
        .iter()
        .map(|(key, value)| format!("config {key} = {value:?}"));
    let from_environment = rules
        .secrets
        .iter()
        .filter(|rule| rule.source == SecretSource::Environment);
    let secrets = from_environment.map(|rule| format!("secret {} is a variable of the host's environment", rule.name));
    env.chain(config).chain(secrets).collect()
}
