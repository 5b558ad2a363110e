//! The host's own files: everything that this process reads as configuration or starts.
//!
//! There is one list for the whole process. The command line, the environment, stored options and configuration files add the
//! files that they name, before a host is built. Every host of the process [protects](protect) the files of the list. A plugin
//! that could write to such a file would change its own rights, or start a program outside of the sandbox.

use std::any::TypeId;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::{Arg, ArgMatches, Command};
use serde_json::Value;

use super::configuration::{configuration_directory, data_directory, data_path};
use super::environment::variable;
use super::project_servers::MCP_JSON_FILE;
use super::sessions::SessionFlags;
use toolwit::mcp::{McpConfig, ServerEndpoint};
use toolwit::registry::Project;
use toolwit::sandbox::WritableRecord;
use toolwit::{Error, ErrorKind, Phase, ToolwitBuilder};

/// The files that the command line, the environment, stored options and configuration files have named so far.
static NAMED_FILES: Mutex<NamedFiles> = Mutex::new(NamedFiles {
    protected: Vec::new(),
    read_only: Vec::new(),
});

#[derive(Debug, Default)]
struct NamedFiles {
    /// Files to which no plugin gets access.
    protected: Vec<PathBuf>,
    /// Files that can be granted for reading only.
    read_only: Vec<PathBuf>,
}

/// The arguments with paths of files that the host writes, or reads as data and not as configuration.
const DATA_ARGUMENTS: [&str; 3] = ["out", "trace", "attachments"];

/// The values of options for files that are no paths: standard input, and a database in memory.
const NOT_FILES: [&str; 2] = ["-", ":memory:"];

/// The environment variables with the path of a file that the host reads.
const FILE_VARIABLES: [&str; 3] = ["TOOLWIT_GRANTS", "TOOLWIT_POLICY", "TOOLWIT_MODEL"];

/// The environment variables with the root certificates. They are not secret.
const CERTIFICATE_VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The prefixes of a value that names a file.
const FILE_PREFIXES: [&str; 2] = ["scripted:", "@"];

/// The name of the record of writable directories, in the user's data directory.
const WRITABLE_RECORD: &str = "writable-directories";

/// Adds a file that the host reads as configuration.
pub(crate) fn add(path: impl Into<PathBuf>) {
    named_files().protected.push(path.into());
}

/// Returns the files that the options of a command line name, except those that the host does not read as configuration. The
/// path of an unknown option counts as such a file.
pub(crate) fn files_of_options(command: &Command, matches: &ArgMatches) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for argument in command.get_arguments() {
        let values = matches.try_get_raw(argument.get_id().as_str());
        let values = values.ok().flatten().into_iter().flatten();
        files.extend(values.filter_map(|value| file_of_option(argument, Path::new(value))));
    }
    if let Some((name, matches)) = matches.subcommand()
        && let Some(command) = command.find_subcommand(name)
    {
        files.extend(files_of_options(command, matches));
    }
    files
}

/// Returns the file that the value of an option names, unless the host does not read it as configuration.
fn file_of_option(argument: &Arg, value: &Path) -> Option<PathBuf> {
    let is_path = argument.get_value_parser().type_id() == TypeId::of::<PathBuf>()
        || argument
            .get_value_names()
            .is_some_and(|names| names.iter().any(|name| name == "FILE"));
    let is_component = value.extension().is_some_and(|extension| extension == "wasm");
    let is_option = argument.get_long().is_some();
    match file_after_prefix(&value.to_string_lossy()).filter(|_| is_option) {
        Some(file) => Some(file),
        None if !is_path || is_component || value.is_dir() || NOT_FILES.contains(&&*value.to_string_lossy()) => None,
        None if DATA_ARGUMENTS.contains(&argument.get_id().as_str()) => None,
        None => Some(value.to_owned()),
    }
}

fn file_after_prefix(value: &str) -> Option<PathBuf> {
    FILE_PREFIXES
        .iter()
        .find_map(|prefix| value.strip_prefix(prefix))
        .map(PathBuf::from)
}

/// Adds the files that the stored options of a session name. Their paths are absolute.
pub(crate) fn add_stored_options(options: &Value) {
    match options {
        Value::String(text) => {
            let file = file_after_prefix(text).unwrap_or_else(|| PathBuf::from(text));
            if file.is_absolute() && !file.is_dir() && file.extension().is_none_or(|extension| extension != "wasm") {
                add(file);
            }
        }
        Value::Array(values) => values.iter().for_each(add_stored_options),
        Value::Object(options) => options.values().for_each(add_stored_options),
        _ => {}
    }
}

/// Adds the programs that MCP servers start, and the scripts that these programs execute.
pub(crate) fn add_programs(config: &McpConfig) {
    for server in config.servers() {
        let ServerEndpoint::Process(process) = &server.endpoint else {
            continue;
        };
        let program = PathBuf::from(&process.program);
        let has_directory = program.components().count() > 1;
        // The value of an argument from another source, such as a secret, is not the path of a script.
        let arguments = process.arguments.iter().map(ToString::to_string);
        // Any argument can name a script: `uv run a.py`, `python -X utf8 a.py`, `node --import=./a.mjs`.
        let scripts = arguments.map(|argument| match argument.split_once('=') {
            Some((flag, value)) if flag.starts_with('-') => PathBuf::from(value),
            _ => PathBuf::from(argument),
        });
        let files = Some(program).filter(|_| has_directory).into_iter().chain(scripts);
        for file in files {
            let file = process.directory.as_deref().unwrap_or(Path::new("")).join(file);
            if file.is_file() {
                named_files().read_only.push(file);
            }
        }
    }
}

/// Adds the host's own files to a builder: the files of the list, the directories with the configuration and the data of the
/// user, the sessions, and the files of the project in the current directory.
pub(crate) fn protect(mut builder: ToolwitBuilder) -> ToolwitBuilder {
    // The configuration directory contains grants, secrets and accepted proposals of projects, including files that this
    // command does not use. The data directory and the sessions contain approvals.
    let directories = configuration_directory().ok().into_iter().chain(data_directory());
    let from_environment = FILE_VARIABLES.into_iter().filter_map(variable).map(PathBuf::from);
    let from_environment = from_environment.map(|value| file_after_prefix(&value.to_string_lossy()).unwrap_or(value));
    let protected = directories
        .chain(SessionFlags::default().protected_paths())
        .chain(from_environment);
    let certificates = CERTIFICATE_VARIABLES
        .into_iter()
        .filter_map(variable)
        .map(PathBuf::from);
    let of_project = [Project::FILE_NAME, MCP_JSON_FILE].map(PathBuf::from);
    let read_only = of_project
        .into_iter()
        .filter(|file| file.exists())
        .chain(certificates)
        .chain(std::env::current_exe().ok());
    let named = named_files();
    builder = protected
        .chain(named.protected.iter().cloned())
        .fold(builder, ToolwitBuilder::protect);
    builder = read_only
        .chain(named.read_only.iter().cloned())
        .fold(builder, ToolwitBuilder::protect_from_writing);
    match writable_record() {
        Some(record) => builder.writable_record(record),
        None => builder,
    }
}

/// Refuses a file of the operator that a plugin could have written: it is in a directory that was open for a plugin to write
/// to, under whatever grants. Such a file could start programs, grant access or approve calls for the plugin.
///
/// # Errors
/// [`ErrorKind::Configuration`].
pub(crate) fn require_not_written_by_plugin(file: &Path) -> Result<(), Error> {
    let Some(record) = writable_record() else {
        return Ok(());
    };
    let problem: io::Result<Option<String>> = record.directory_around(file).map(|directory| {
        directory.map(|directory| format!("a plugin could write to its directory {}", directory.display()))
    });
    let reason = match problem {
        Ok(None) => return Ok(()),
        Ok(Some(reason)) => reason,
        Err(error) => error.to_string(),
    };
    let message = format!("`{}` is not used as configuration: {reason}", file.display());
    Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion("check its content, and move it to a directory that no grant allows a plugin to write to"))
}

/// Checks that the user's record of writable directories can be read.
///
/// # Errors
/// [`ErrorKind::Configuration`].
pub(crate) fn check_writable_record() -> Result<(), Error> {
    let Some(record) = writable_record() else {
        return Ok(());
    };
    record
        .check()
        .map_err(|error| Error::new(ErrorKind::Configuration, Phase::Registry, error.to_string()))
}

/// Returns the user's record of the directories that were writable for plugins, if the user has a home directory.
fn writable_record() -> Option<WritableRecord> {
    data_path(WRITABLE_RECORD).map(WritableRecord::new)
}

fn named_files() -> MutexGuard<'static, NamedFiles> {
    NAMED_FILES.lock().unwrap_or_else(PoisonError::into_inner)
}
