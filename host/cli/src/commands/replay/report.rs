//! The report of a replay.

use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::page::{BAD, FAINT, GOOD, NAME, Page, counted};
use crate::output::printer::{Format, Printer};
use toolwit::agent::{CallOrigin, Difference, Divergence, ReplayedCall, StartedReplay, line_diff};

/// The calls of a replay, and its differences from the trace.
#[derive(Serialize)]
pub(super) struct ReplayOutcome {
    ok: bool,
    calls: Vec<ReplayedCall>,
    differences: Vec<Difference>,
    /// The difference after which the replay could not continue.
    divergence: Option<Divergence>,
}

impl ReplayOutcome {
    pub(super) fn of(replay: &StartedReplay) -> Self {
        let (differences, divergence) = (replay.differences(), replay.divergence());
        Self {
            ok: differences.is_empty() && divergence.is_none(),
            calls: replay.calls(),
            differences,
            divergence,
        }
    }

    pub(super) fn print(&self, printer: Printer) -> Result<Exit, Failure> {
        match printer.format() {
            Format::Json => printer.document(self)?,
            Format::Human => printer.print_page(&self.page())?,
        }
        Ok(if self.ok { Exit::Success } else { Exit::Failed })
    }

    fn page(&self) -> Page {
        let mut page = Page::new();
        for call in &self.calls {
            let origin = match call.origin {
                CallOrigin::Executed => "executed",
                CallOrigin::Trace => "from the trace",
            };
            page.styled(FAINT, format_args!("{origin:<15}"));
            page.styled(NAME, &call.tool).text(format_args!("  {}", call.id));
            if !call.omitted_artifacts.is_empty() {
                let kinds = call.omitted_artifacts.join(", ");
                page.styled(
                    FAINT,
                    format_args!("  without artifacts that were too large for the trace: {kinds}"),
                );
            }
            page.end();
        }
        for difference in &self.differences {
            write_heading(&mut page, difference);
            let recorded = difference.recorded.as_deref().unwrap_or_default();
            for line in line_diff(recorded, difference.replayed.as_deref().unwrap_or_default()) {
                write_line(&mut page, &line);
            }
        }
        if let Some(divergence) = &self.divergence {
            let Divergence {
                sequence,
                subject,
                diff,
                ..
            } = divergence;
            page.text(format_args!("event {sequence}: "))
                .styled(NAME, subject)
                .text(", the replay ends here")
                .end();
            for line in diff {
                write_line(&mut page, line);
            }
        }
        match self.differences.len() + usize::from(self.divergence.is_some()) {
            0 => page.styled(GOOD, "no differences").end(),
            count => page.styled(BAD, counted(count, "difference")).end(),
        };
        page
    }
}

fn write_line(page: &mut Page, line: &str) {
    let style = if line.starts_with('-') { BAD } else { GOOD };
    page.spaces(2).styled(style, line).end();
}

fn write_heading(page: &mut Page, difference: &Difference) {
    match difference.sequence {
        Some(sequence) => page.text(format_args!("event {sequence}: ")),
        None => page.text("only in the replay: "),
    };
    page.styled(NAME, &difference.event);
    if let Some(call) = &difference.call {
        page.text(format_args!(" of call {call}"));
    }
    page.end();
}
