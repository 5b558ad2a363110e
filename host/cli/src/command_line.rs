//! The command line: global options, subcommands, and the error after wrong usage.

use std::ffi::{OsStr, OsString};

use clap::error::ErrorKind as ClapErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};

use crate::commands::Command;
use crate::exit::Exit;
use crate::input::host_files;
use crate::output::flags::OutputFlags;
use crate::output::page::Page;
use crate::output::printer::{Format, Printer, Verbosity, write_stderr};
use toolwit::tool::text::is_printable;
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit demo                                           run a conversation with a scripted model
  toolwit build greet --out tools                        build a plugin from source
  toolwit list --plugins tools                           list the tools of a plugin directory
  toolwit call add a=1 b=2 --plugins tools               call a tool without a model
  toolwit inspect tools/calc.wasm                        show the exports and imports of a component
  toolwit add calc.wasm                                  copy a component into the directory `tools`
  toolwit doctor                                         diagnose the installation
  toolwit run \"What is 2/3?\" --model openai:gpt-5        ask a model that has the tools in ./tools

Exit codes:
  0    success
  1    the tool or the model returned an error
  2    wrong usage or configuration
  3    a plugin could not be built or loaded
  4    stopped by a limit or a missing grant
  130  interrupted";

/// Run tools for AI agents as sandboxed WebAssembly components
///
/// A tool is a function that a component exports. Put `weather.wasm` into a plugin directory and its functions are
/// tools. Plugins are isolated from each other and the host, and each call has limits on time, memory and output.
#[derive(Debug, Parser)]
#[command(name = "toolwit", version, after_help = EXAMPLES, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl CommandLine {
    /// Parses a command line. The files that its options name become files of the host, to which no plugin gets access.
    ///
    /// # Errors
    /// For wrong usage, and for a request for help or the version.
    pub(crate) fn parse_and_protect_files(arguments: &[OsString]) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(arguments)?;
        let parsed = Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
        host_files::files_of_options(&command, &matches)
            .into_iter()
            .for_each(host_files::add);
        Ok(parsed)
    }
}

/// Prints help or the version to standard output, or prints the error after wrong usage. With `--json`, help and version
/// are errors too.
pub(crate) fn report_parse_error(error: &clap::Error, arguments: &[OsString]) -> Exit {
    let is_help = matches!(
        error.kind(),
        ClapErrorKind::DisplayHelp
            | ClapErrorKind::DisplayVersion
            | ClapErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_help && !wants_json(arguments) {
        // Help is data and goes to standard output. A closed pipe is not an error.
        let help = error.render();
        let mut stdout = anstream::AutoStream::auto(std::io::stdout().lock());
        let _ = std::io::Write::write_all(&mut stdout, help.ansi().to_string().as_bytes());
        return Exit::Success;
    }
    if wants_json(arguments) {
        let error = if is_help {
            usage_error("help and version are not available as JSON", Some("remove `--json`"))
        } else {
            from_clap_error(error)
        };
        let _ = Printer::new(Format::Json, Verbosity::Quiet).report_error(&error);
        return Exit::UsageOrConfiguration;
    }
    // An argument can be untrusted text, and clap repeats it in the error. `Page` escapes control characters.
    let is_printable_argument =
        |argument: &OsString| argument.to_string_lossy().chars().all(|c| is_printable(c) && c != '\n');
    if arguments.iter().all(is_printable_argument) {
        let _ = error.print();
    } else {
        write_stderr(Page::new().text(error.render()).end());
    }
    Exit::UsageOrConfiguration
}

/// Returns whether a command line that could not be parsed contains `--json`.
fn wants_json(arguments: &[OsString]) -> bool {
    arguments
        .iter()
        .skip(1)
        .take_while(|argument| *argument != "--")
        .any(|argument| argument == OsStr::new("--json"))
}

/// Converts an error of clap. Its first paragraph becomes the message. Its tip, if it has one, becomes the suggestion.
fn from_clap_error(error: &clap::Error) -> Error {
    let rendered = error.render().to_string();
    let paragraph: Vec<_> = rendered
        .lines()
        .take_while(|line| !line.trim().is_empty())
        .map(str::trim)
        .collect();
    let message = paragraph.join(" ");
    let tip = rendered.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    usage_error(message.trim_start_matches("error: "), tip)
}

fn usage_error(message: &str, suggestion: Option<&str>) -> Error {
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion(suggestion.unwrap_or("`toolwit help` lists the commands"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns the files of a command line to which no plugin gets access.
    fn protected_files(arguments: &[&str]) -> Vec<String> {
        let mut command = CommandLine::command();
        let matches = command.try_get_matches_from_mut(arguments).unwrap();
        let files = host_files::files_of_options(&command, &matches);
        let mut files: Vec<_> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        files.sort();
        files
    }

    // attack: L1
    #[test]
    fn no_plugin_has_access_to_the_files_that_options_name() {
        let run = [
            "toolwit --mcp a.toml --mcp b.json --policy p.toml --groups g.toml --grants grants.toml --secrets s.toml",
            "--model scripted:m.toml --model-table t.toml --answer-schema answer.json --plugins calc.wasm --trace out",
        ];
        let run = run.join(" ").replace("toolwit ", "toolwit run hi ");
        assert_eq!(
            protected_files(&run.split(' ').collect::<Vec<_>>()),
            [
                "a.toml",
                "answer.json",
                "b.json",
                "g.toml",
                "grants.toml",
                "m.toml",
                "p.toml",
                "s.toml",
                "t.toml"
            ]
        );
        let serve = "toolwit serve --config server.toml --token-file t.token --content c.toml";
        assert_eq!(
            protected_files(&serve.split(' ').collect::<Vec<_>>()),
            ["c.toml", "server.toml", "t.token"]
        );
        assert_eq!(
            protected_files(&["toolwit", "call", "--script", "calls.jsonl"]),
            ["calls.jsonl"]
        );
    }

    #[test]
    fn arguments_of_a_tool_standard_input_and_directories_can_be_granted() {
        for arguments in [
            &["toolwit", "call", "add", "@arguments.json", "--plugins", "."][..],
            &["toolwit", "call", "--script", "-", "--store", ":memory:"],
        ] {
            assert_eq!(protected_files(arguments), [""; 0], "{arguments:?}");
        }
    }

    #[test]
    fn the_command_line_passes_the_checks_of_clap() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn a_usage_error_has_the_message_and_the_tip_of_clap() {
        let error = CommandLine::try_parse_from(["toolwit", "inspekt"]).unwrap_err();
        let error = from_clap_error(&error);
        assert_eq!(error.message, "unrecognized subcommand 'inspekt'");
        assert_eq!(
            error.suggestion.as_deref(),
            Some("a similar subcommand exists: 'inspect'")
        );
    }
}
