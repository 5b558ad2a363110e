//! `toolwit trace`: draws the run that a trace recorded.

mod html;
mod rows;

use std::path::Path;

use anstyle::Style;
use tokio_util::sync::CancellationToken;

use self::html::html_page;
use self::rows::{Row, RowKind, trace_rows};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::call_arguments::read_text;
use crate::output::page::{BAD, FAINT, NAME, Page, TITLE, WARN};
use crate::output::printer::{Format, Printer};
use toolwit::agent::Recording;
use toolwit::{Error, ErrorKind, Phase};

/// Maximum size of a trace, in bytes.
const TRACE_BYTES_MAX: u64 = 256 << 20;

/// Width of a bar, in columns of the terminal.
const BAR_COLUMNS: u64 = 24;

/// Width of the names with their indentation, in columns of the terminal.
const NAME_COLUMNS: usize = 32;

const EXAMPLES: &str = "\
Examples:
  toolwit run \"Count the words\" --model openai:gpt-5 --trace run.jsonl
  toolwit trace run.jsonl
  toolwit trace run.jsonl --html > run.html";

/// Draw a recorded run as a waterfall
///
/// Shows the turns, inferences, calls, nested calls and injected tools of a trace with their time. Nothing is executed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DrawTrace {
    /// Path to the trace
    file: String,
    /// Print one HTML page without external resources
    #[arg(long, conflicts_with = "json")]
    html: bool,
}

impl DrawTrace {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let recording = read_recording(Path::new(&self.file), cancel).await?;
        let rows = trace_rows(recording.entries());
        if self.html {
            printer.raw_text(&html_page(&self.file, &rows))?;
        } else if printer.format() == Format::Json {
            printer.document(&rows)?;
        } else {
            printer.print_page(&waterfall_page(&rows))?;
        }
        Ok(Exit::Success)
    }
}

/// Reads a trace.
pub(crate) async fn read_recording(path: &Path, cancel: &CancellationToken) -> Result<Recording, Error> {
    let file = path.display();
    let text = read_text(format!("@{file}"), TRACE_BYTES_MAX, cancel).await?;
    Recording::parse(&text).map_err(|error| {
        Error::new(ErrorKind::Configuration, Phase::Registry, format!("{file}: {error}"))
            .with_suggestion("record a trace with `toolwit run PROMPT --trace FILE`")
    })
}

fn waterfall_page(rows: &[Row]) -> Page {
    let mut page = Page::new();
    let end_ms = rows.iter().map(Row::end_ms).max().unwrap_or(0);
    for row in rows {
        let style = match row.kind {
            RowKind::Turn => TITLE,
            RowKind::Model | RowKind::Note => Style::new(),
            RowKind::Call => NAME,
            RowKind::Tools => WARN,
        };
        page.styled(FAINT, format_args!("{:>4} ", row.sequence));
        page.spaces(row.depth * 2);
        let name: String = row.name.chars().take(NAME_COLUMNS).collect();
        let used_columns = row.depth * 2 + name.chars().count();
        page.styled(style, &name)
            .spaces(NAME_COLUMNS.saturating_sub(used_columns) + 2);
        match row.wall_ms {
            Some(wall_ms) => {
                page.styled(FAINT, bar(row.start_ms, wall_ms, end_ms))
                    .text(format_args!(" {wall_ms:>6} ms  "));
            }
            None => {
                // As wide as a bar and its duration.
                page.spaces(BAR_COLUMNS as usize + 12);
            }
        }
        let usage = row.usage();
        if !usage.is_empty() {
            page.styled(FAINT, format_args!("{usage}  "));
        }
        page.styled(if row.is_error { BAD } else { FAINT }, row.detail.replace('\n', " "))
            .end();
    }
    page
}

/// Returns the timeline of the trace as text, in which a bar shows the start and the duration of one event. The trace
/// ends at `end_ms`.
fn bar(start_ms: u64, wall_ms: u64, end_ms: u64) -> String {
    let raw_column = |at_ms: u64| u128::from(at_ms) * u128::from(BAR_COLUMNS) / u128::from(end_ms.max(1));
    let column = |at_ms: u64| u64::try_from(raw_column(at_ms)).unwrap_or(BAR_COLUMNS).min(BAR_COLUMNS);
    let first_column = column(start_ms).min(BAR_COLUMNS - 1);
    let end_column = column(start_ms.saturating_add(wall_ms)).max(first_column + 1);
    (0..BAR_COLUMNS)
        .map(|column| {
            if (first_column..end_column).contains(&column) {
                '█'
            } else {
                '·'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bar_is_visible_and_has_the_same_width() {
        for (start, wall, end) in [
            (0, 0, 0),
            (0, 10, 10),
            (10, 0, 10),
            (u64::MAX, u64::MAX, u64::MAX),
            (5, 5, 1),
        ] {
            let bar = bar(start, wall, end);
            assert_eq!(bar.chars().count() as u64, BAR_COLUMNS);
            assert!(bar.contains('█'), "{start} {wall} {end}");
        }
    }
}
