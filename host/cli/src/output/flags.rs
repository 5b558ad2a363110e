//! The options for the output of every command.

use clap::{ArgAction, Args};

use super::printer::{Format, Printer, Verbosity};

/// The format and verbosity of the output.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFlags {
    /// Print JSON to standard output, also on failure
    #[arg(long, global = true)]
    json: bool,
    /// Verbose diagnostics: resource usage and guest output (-vv: debug log)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// Print nothing but errors to standard error
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
}

impl OutputFlags {
    pub(crate) fn printer(self) -> Printer {
        let format = if self.json { Format::Json } else { Format::Human };
        let verbosity = match self.verbose {
            _ if self.quiet => Verbosity::Quiet,
            0 => Verbosity::Normal,
            1 => Verbosity::Verbose,
            _ => Verbosity::Debug,
        };
        Printer::new(format, verbosity)
    }
}
