//! The recorded accesses that other grants would refuse.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::commands::trace::read_recording;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::access::{parse_access, parse_http_target};
use crate::output::page::{BAD, GOOD, NAME, Page, counted};
use crate::output::printer::{Format, Printer};
use toolwit::agent::{RecordedCall, Recording};
use toolwit::grants::{Decision, DeclaredCapabilities, EffectiveRights, Grants, decide};
use toolwit::sandbox::GrantsFile;
use toolwit::{Error, ErrorKind, Phase};

/// Maximum number of traces in the folder of `--what-if`.
const TRACES_MAX: usize = 10_000;

/// An access that the grants would refuse.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct RefusedAccess {
    trace: String,
    /// The number of the event with which the call started.
    sequence: u64,
    call: String,
    tool: String,
    access: String,
    reason: String,
}

/// The numbers of traces, calls and accesses that were checked, and the refused accesses.
#[derive(Serialize)]
struct WhatIfReport {
    ok: bool,
    traces: usize,
    calls: usize,
    accesses: usize,
    refused: Vec<RefusedAccess>,
}

/// Reports which accesses of the traces a grants file would refuse.
pub(super) async fn report_refused_accesses(
    path: &Path,
    grants: &Path,
    printer: Printer,
    cancel: &CancellationToken,
) -> Result<Exit, Failure> {
    if !grants.exists() {
        let message = format!("the grants file `{}` does not exist", grants.display());
        return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).into());
    }
    let grants = GrantsFile::new(grants).read().map_err(Error::from)?;
    let mut report = WhatIfReport {
        ok: true,
        traces: 0,
        calls: 0,
        accesses: 0,
        refused: Vec::new(),
    };
    for file in trace_files(path)? {
        let recording = read_recording(&file, cancel).await?;
        report.add(&file, &recording, &grants)?;
    }
    report.ok = report.refused.is_empty();
    match printer.format() {
        Format::Json => printer.document(&report)?,
        Format::Human => printer.print_page(&report.page())?,
    }
    Ok(if report.ok { Exit::Success } else { Exit::Failed })
}

/// Returns the trace, or the traces of a folder in the order of their names.
fn trace_files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let folder_error = |error: std::io::Error| {
        let message = format!("the folder `{}` cannot be read: {error}", path.display());
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_source(error)
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(folder_error)? {
        let file = entry.map_err(folder_error)?.path();
        if file.extension().is_some_and(|extension| extension == "jsonl") {
            files.push(file);
        }
    }
    if files.is_empty() || files.len() > TRACES_MAX {
        let message = format!("the folder `{}` has {} traces (`*.jsonl`)", path.display(), files.len());
        let hint = format!("pass a trace, or a folder with 1 to {TRACES_MAX} of them");
        return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(hint));
    }
    files.sort();
    Ok(files)
}

impl WhatIfReport {
    /// Checks the accesses of one trace, and adds those that the grants would refuse.
    fn add(&mut self, file: &Path, recording: &Recording, grants: &Grants) -> Result<(), Error> {
        self.traces += 1;
        for call in recording.calls() {
            self.calls += 1;
            let Some(outcome) = call.outcome else { continue };
            for access in &outcome.accesses {
                self.accesses += 1;
                if let Some(reason) = refusal(&call, access, grants)? {
                    self.refused.push(RefusedAccess {
                        trace: file.display().to_string(),
                        sequence: call.sequence,
                        call: call.id.to_owned(),
                        tool: call.tool.to_string(),
                        access: access.clone(),
                        reason,
                    });
                }
            }
        }
        Ok(())
    }

    fn page(&self) -> Page {
        let mut page = Page::new();
        for refused in &self.refused {
            page.text(format_args!("{}:{} ", refused.trace, refused.sequence));
            page.styled(NAME, &refused.tool)
                .text(format_args!("  {}: ", refused.access));
            page.styled(BAD, &refused.reason).end();
        }
        let style = if self.ok { GOOD } else { BAD };
        let (refused, accesses) = (self.refused.len(), self.accesses);
        let (calls, traces) = (counted(self.calls, "call"), counted(self.traces, "trace"));
        page.styled(
            style,
            format_args!("{refused} of {accesses} recorded accesses would be refused"),
        );
        page.text(format_args!(" ({calls}, {traces})")).end();
        page
    }
}

/// Returns the reason for which the grants would refuse a recorded access, or `None` if they would allow it.
fn refusal(call: &RecordedCall<'_>, access: &str, grants: &Grants) -> Result<Option<String>, Error> {
    let digest = call
        .start
        .and_then(|start| start.code_digest.as_deref())
        .unwrap_or_default();
    // The host allowed the recorded access, so the component declares its capability.
    let rights = EffectiveRights::new(&DeclaredCapabilities::all(), grants, call.tool.owner(), digest);
    let target = parse_http_target(access)?;
    Ok(match decide(&rights, &parse_access(access, target.as_ref())) {
        Decision::Allowed { .. } => None,
        Decision::Denied(denial) => Some(denial.to_string()),
    })
}
