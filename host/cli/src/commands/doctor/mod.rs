//! `toolwit doctor`: what is wrong with a set-up, and how to mend it.

mod finding;
mod grants;
mod packages;
mod surroundings;

use serde_json::json;

use self::finding::{Finding, Findings, State};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::limits::LimitFlags;
use crate::input::plugins::{AuthorityFlags, PluginFlags};
use crate::output::page::{BAD, FAINT, GOOD, Page, WARN};
use crate::output::printer::{Format, Printer};
use toolwit::{Error, Phase};

/// Check the set-up, and say what to mend
///
/// Looks at the packages and how their tools did, at the keys that they need, at grants, secrets, the store, the cache and the
/// toolchain. Nothing is compiled and no guest code runs. The exit code is 0 when nothing is broken, 3 when a package is,
/// else 2.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    authority: AuthorityFlags,
}

impl Doctor {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let mut findings = Findings::default();
        match self.plugins.load(&LimitFlags::default()).await {
            Ok(host) => {
                let registry = host.registry();
                packages::check(&registry, &mut findings);
                grants::check(&registry, &self.authority, &mut findings);
            }
            Err(error) => findings.error("plugins", &error),
        }
        surroundings::check(&self.plugins, &self.authority, &mut findings).await;
        let exit = findings.exit();
        match printer.format() {
            Format::Json => printer.document(&json!({
                "ok": exit == Exit::Success,
                "findings": findings.list(),
            }))?,
            Format::Human => printer.data(&page(findings.list()))?,
        }
        Ok(exit)
    }
}

fn page(findings: &[Finding]) -> Page {
    let mut page = Page::new();
    for finding in findings {
        let (style, word) = match finding.state {
            State::Ok => (GOOD, "ok     "),
            State::Warning => (WARN, "warning"),
            State::Problem => (BAD, "problem"),
        };
        page.styled(style, word).text("  ").quoted(&finding.message).end();
        if let Some(suggestion) = &finding.suggestion {
            page.indent(9).styled(FAINT, format_args!("hint: {suggestion}")).end();
        }
    }
    page
}

/// What a command would end with that met this error.
fn exit_of(error: &Error) -> Exit {
    match error.phase {
        Phase::Load | Phase::Link => Exit::NotLoaded,
        _ => Exit::of(error),
    }
}
