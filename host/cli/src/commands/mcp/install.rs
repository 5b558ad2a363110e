//! `toolwit mcp install`: configures an MCP client.

use std::path::PathBuf;

use clap::Parser;

use super::client::Client;
use super::client_file::{StartCommand, read, with_server, write};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::paths::path_text;
use crate::input::plugins::PluginFlags;
use crate::input::served_host::ServedHostFlags;
use crate::output::flags::OutputFlags;
use crate::output::page::Page;
use crate::output::printer::{Format, Printer};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit mcp install --client claude-desktop --plugins ~/tools
  toolwit mcp install --client cursor --plugins ~/tools --write
  toolwit mcp install --client codex --plugins ~/tools --write -- --exposure search --wall 10s";

/// Configure an MCP client to use the tools of plugins
///
/// Prints the configuration. With --write, adds it to the configuration file of the client, and does not change other
/// entries of the file. Options after -- are passed to `toolwit mcp`. Their paths must be absolute.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Install {
    /// Client to configure
    #[arg(long, value_name = "NAME")]
    client: Client,
    /// Add the server to the configuration file of the client
    #[arg(long)]
    write: bool,
    /// Path to the configuration file [default: that of the client]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Name of the server in the client
    #[arg(long, value_name = "NAME", default_value = "toolwit", value_parser = parse_server_name)]
    name: String,
    #[command(flatten)]
    plugins: PluginFlags,
    /// Further options of `toolwit mcp`
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

impl Install {
    pub(super) fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let start_command = self.start_command()?;
        let form = self.client.entry_form();
        let new_configuration = with_server("", form, &start_command).map_err(|problem| internal_error(&problem))?;
        if !self.write {
            printer.raw_text(&new_configuration)?;
            if let Ok(path) = self.configuration_path()
                && printer.format() == Format::Human
            {
                let mut page = Page::new();
                page.text("add this to ")
                    .text(path.display())
                    .text(", or repeat the command with --write");
                printer.message(page.end());
            }
            return Ok(Exit::Success);
        }
        let path = self.configuration_path()?;
        let text = with_server(&read(&path)?, form, &start_command).map_err(|problem| {
            let message = format!("the configuration `{}` cannot be extended: {problem}", path.display());
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("repeat the command without `--write`, and add the printed configuration by hand")
        })?;
        write(&path, &text)?;
        if printer.format() == Format::Json {
            let document = serde_json::json!({"file": path.display().to_string(), "name": self.name});
            return printer.document(&document).map(|()| Exit::Success);
        }
        let mut page = Page::new();
        page.text("wrote ")
            .text(path.display())
            .text("; restart the client to use it")
            .end();
        printer.message(&page);
        Ok(Exit::Success)
    }

    fn configuration_path(&self) -> Result<PathBuf, Error> {
        match &self.file {
            Some(file) => Ok(file.clone()),
            None => self.client.configuration_path(),
        }
    }

    /// Returns the command that starts the server. The paths in the command are absolute, because a client has another
    /// working directory, and often another `PATH`.
    fn start_command(&self) -> Result<StartCommand, Error> {
        let program = std::env::current_exe().map_err(|error| {
            let message = "the path of the `toolwit` program is unknown";
            Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error)
        })?;
        let mut arguments = vec!["mcp".to_owned()];
        for directory in self.plugins.directories()? {
            let absolute = std::fs::canonicalize(&directory).map_err(|error| {
                let message = format!("the plugin directory `{}` cannot be read: {error}", directory.display());
                Error::new(ErrorKind::Configuration, Phase::Registry, message)
            })?;
            arguments.extend(["--plugins".to_owned(), path_text(&absolute)?]);
        }
        let is_store = |option: &String| option == "--store" || option.starts_with("--store=");
        if !self.options.iter().any(is_store) {
            arguments.extend(self.plugins.store.to_arguments()?);
        }
        arguments.extend(self.plugins.wasi.to_arguments());
        arguments.extend(self.options.iter().cloned());
        check_arguments(&arguments)?;
        Ok(StartCommand {
            name: self.name.clone(),
            program: path_text(&program)?,
            arguments,
        })
    }
}

/// The command line of the server. Its options are only checked.
#[derive(Parser)]
#[command(name = "toolwit mcp")]
struct ServerCommandLine {
    #[command(flatten)]
    _output: OutputFlags,
    #[command(flatten)]
    _host: ServedHostFlags,
}

/// Checks that `toolwit mcp` accepts the arguments. A client may not show the error of a server that does not start.
fn check_arguments(arguments: &[String]) -> Result<(), Error> {
    let Err(error) = ServerCommandLine::try_parse_from(arguments) else {
        return Ok(());
    };
    let text = error.to_string();
    let problem = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let message = format!("an option after `--` is not valid: {problem}");
    Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion("`toolwit mcp --help` lists the options"))
}

/// Checks that the name of a server is valid in every client.
fn parse_server_name(name: &str) -> Result<String, String> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 40 || !name.chars().all(is_valid) {
        return Err("it must have 1 to 40 letters, digits, `-` or `_`".to_owned());
    }
    Ok(name.to_owned())
}

fn internal_error(problem: &str) -> Error {
    Error::new(
        ErrorKind::Internal,
        Phase::Registry,
        format!("the configuration cannot be created: {problem}"),
    )
}
