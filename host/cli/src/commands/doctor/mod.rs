//! `toolwit doctor`: diagnoses the installation and suggests fixes.

mod environment;
mod finding;
mod grants;
mod packages;

use serde_json::json;

use self::finding::{Finding, Findings, Severity};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::limits::LimitFlags;
use crate::input::plugins::{GrantAndSecretFlags, PluginFlags};
use crate::output::page::{BAD, FAINT, GOOD, Page, WARN};
use crate::output::printer::{Format, Printer};
use toolwit::{Error, Phase};

/// Diagnose the installation and suggest fixes
///
/// Checks packages, the values that their manifests require, the health of their tools, grants, secrets, the metadata
/// database, the code cache, word vectors, the limit of open files and the toolchain. Nothing is compiled and no guest code runs. Exits with 0
/// if there is no problem, 3 if a package is broken, 130 after an interrupt, else 2.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    grants_and_secrets: GrantAndSecretFlags,
}

impl Doctor {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let mut findings = Findings::default();
        let grants = self.grants_and_secrets.grants.read();
        let host_or_error = match &grants {
            Ok(_) => {
                self.plugins
                    .load_with_grants(&LimitFlags::default(), &self.grants_and_secrets)
                    .await
            }
            Err(_) => self.plugins.load(&LimitFlags::default()).await,
        };
        match host_or_error {
            Ok(host) => {
                let registry = host.registry();
                packages::check(&registry, &mut findings);
                match &grants {
                    Ok(grants) => {
                        let directories = self.plugins.real_directories();
                        grants::check(&registry, grants, &self.grants_and_secrets, &directories, &mut findings).await;
                    }
                    Err(error) => findings.add_error("grants", error),
                }
            }
            Err(error) => findings.add_error("plugins", &error),
        }
        environment::check(&self.plugins, &self.grants_and_secrets, &mut findings).await;
        let exit = findings.exit();
        match printer.format() {
            Format::Json => printer.document(&json!({
                "ok": exit == Exit::Success,
                "findings": findings.list(),
            }))?,
            Format::Human => printer.print_page(&findings_page(findings.list()))?,
        }
        Ok(exit)
    }
}

fn findings_page(findings: &[Finding]) -> Page {
    let mut page = Page::new();
    for finding in findings {
        let (style, word) = match finding.severity {
            Severity::Ok => (GOOD, "ok     "),
            Severity::Warning => (WARN, "warning"),
            Severity::Problem => (BAD, "problem"),
        };
        page.styled(style, word).text("  ").text(&finding.message).end();
        if let Some(suggestion) = &finding.suggestion {
            page.spaces(9).styled(FAINT, format_args!("hint: {suggestion}")).end();
        }
    }
    page
}

/// Returns the exit code for an error that a check found: 130 for an interrupt, 3 for an error of a package, else 2. In
/// contrast to [`Exit::of`], every error of loading or linking is an error of a package, even an exceeded limit.
fn exit_of(error: &Error) -> Exit {
    match (error.phase, Exit::of(error)) {
        (_, Exit::Interrupted) => Exit::Interrupted,
        (Phase::Load | Phase::Link, _) | (_, Exit::NotLoaded) => Exit::NotLoaded,
        _ => Exit::UsageOrConfiguration,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwit::ErrorKind;

    #[test]
    fn the_exit_code_is_3_for_a_broken_package_130_for_an_interrupt_and_else_2() {
        let cases = [
            (ErrorKind::UnknownImport, Phase::Link, 3),
            (ErrorKind::Fuel, Phase::Load, 3),
            (ErrorKind::Build, Phase::Build, 3),
            (ErrorKind::Configuration, Phase::Registry, 2),
            (ErrorKind::Io, Phase::Execute, 2),
            (ErrorKind::Denied, Phase::Execute, 2),
            (ErrorKind::Memory, Phase::Instantiate, 2),
            (ErrorKind::Internal, Phase::Execute, 2),
            (ErrorKind::Cancelled, Phase::Load, 130),
        ];
        for (kind, phase, number) in cases {
            let exit = exit_of(&Error::new(kind, phase, "it failed"));
            assert_eq!(exit as u8, number, "{kind} in {phase}");
        }
        let package_error = Error::new(ErrorKind::Configuration, Phase::Registry, "it failed").with_plugin("a");
        assert_eq!(exit_of(&package_error), Exit::NotLoaded);
    }
}
