//! The command line as a whole.

use std::ffi::{OsStr, OsString};

use clap::error::ErrorKind as ClapErrorKind;
use clap::{ArgAction, Args, Parser, Subcommand};

use super::exit::Exit;
use super::printer::{Form, Printer, Talk};
use super::{
    add, build, cache, call, demo, doctor, explain, grant, inspect, list, pack, refresh, remove, run, search, secret,
    show,
};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit demo                                           see it work, with no key and no network
  toolwit build greet --out tools                        a plugin from source
  toolwit list --plugins tools                           the tools of a directory of plugins
  toolwit call add '{\"a\": 1, \"b\": 2}' --plugins tools    one call, no model
  toolwit inspect tools/calc.wasm                        what a component offers and wants
  toolwit add calc.wasm                                  a component into the directory `tools`
  toolwit doctor                                         what is wrong here, and how to mend it
  toolwit run \"What is 2/3?\" --model openai:gpt-5        a model with the tools of ./tools

Exit codes:
  0 fine · 1 the tool or the model answered with an error · 2 wrong usage
  3 a plugin could not be loaded · 4 a limit or a grant stopped it · 130 interrupted";

/// Runs tools for AI agents as sandboxed WebAssembly components.
///
/// A tool is a function that a component exports: drop `weather.wasm` into a directory, and its functions are tools, each
/// call in a sandbox of its own with bounded time, memory and output.
#[derive(Debug, Parser)]
#[command(name = "toolwit", version, after_help = EXAMPLES, arg_required_else_help = true, max_term_width = 100)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) talk: TalkFlags,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What to do.
///
/// Each command's own docs are its help; docs here would take their place.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Demo(demo::Demo),
    Run(Box<run::Run>),
    List(list::List),
    Search(search::Search),
    Show(show::Show),
    Call(Box<call::Call>),
    Inspect(inspect::Inspect),
    Build(build::Build),
    /// Grant something to a plugin, or show what it asks for
    Grant(Box<grant::Grant>),
    /// Take back everything that is granted to a plugin
    Revoke(grant::Revoke),
    /// Say whether a plugin may do something, and by which rule
    Explain(explain::Explain),
    /// Keep the values of secrets, for grants to send
    Secret(secret::Secret),
    Add(add::Add),
    Remove(remove::Remove),
    Refresh(Box<refresh::Refresh>),
    Pack(pack::Pack),
    Cache(cache::Cache),
    Doctor(doctor::Doctor),
}

/// How much is told, and in which form.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct TalkFlags {
    /// Print one JSON document on standard output, for failures too
    #[arg(long, global = true)]
    json: bool,
    /// Tell more on standard error: what a call cost, what the guest wrote; -vv for the log in detail
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    /// Tell nothing on standard error but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
}

impl TalkFlags {
    pub(super) fn printer(self) -> Printer {
        let form = if self.json { Form::Json } else { Form::Human };
        let talk = match self.verbose {
            _ if self.quiet => Talk::Quiet,
            0 => Talk::Normal,
            1 => Talk::Verbose,
            _ => Talk::Debug,
        };
        Printer::new(form, talk)
    }
}

/// Prints help where help was asked for, else what is wrong with the command line.
pub(super) fn refuse(error: &clap::Error, raw: &[OsString]) -> Exit {
    let is_help = matches!(
        error.kind(),
        ClapErrorKind::DisplayHelp
            | ClapErrorKind::DisplayVersion
            | ClapErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_help && !wants_json(raw) {
        // As the shell's own tools do, help that was asked for is data; a closed pipe is no error.
        let help = error.render();
        let mut stdout = anstream::AutoStream::auto(std::io::stdout().lock());
        let _ = std::io::Write::write_all(&mut stdout, help.ansi().to_string().as_bytes());
        return Exit::Success;
    }
    if wants_json(raw) {
        let (exit, error) = match is_help {
            true => (Exit::Usage, usage("help has no JSON form", Some("leave `--json` out"))),
            false => (Exit::Usage, told(error)),
        };
        let _ = Printer::new(Form::Json, Talk::Quiet).error(&error);
        return exit;
    }
    let _ = error.print();
    Exit::Usage
}

/// Whether the command line asks for JSON, as far as one can tell when it cannot be parsed.
fn wants_json(raw: &[OsString]) -> bool {
    raw.iter()
        .skip(1)
        .take_while(|argument| *argument != "--")
        .any(|argument| argument == OsStr::new("--json"))
}

/// Turns the parser's report, which is laid out for people, into one of ours: its first paragraph and its tips.
fn told(error: &clap::Error) -> Error {
    let rendered = error.render().to_string();
    let paragraph: Vec<_> = rendered
        .lines()
        .take_while(|line| !line.trim().is_empty())
        .map(str::trim)
        .collect();
    let message = paragraph.join(" ");
    let tip = rendered.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    usage(message.trim_start_matches("error: "), tip)
}

fn usage(message: &str, suggestion: Option<&str>) -> Error {
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion(suggestion.unwrap_or("`toolwit help` shows what there is"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_refusal_is_told_without_its_layout() {
        let error = Arguments::try_parse_from(["toolwit", "lst"]).unwrap_err();
        let told = told(&error);
        assert_eq!(told.message, "unrecognized subcommand 'lst'");
        assert_eq!(told.suggestion.as_deref(), Some("a similar subcommand exists: 'list'"));
    }
}
