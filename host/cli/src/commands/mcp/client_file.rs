//! The configuration file of an MCP client.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toml_edit::DocumentMut;

use super::client::EntryForm;
use super::json_text::JsonText;
use toolwit::tool::file::StagedFile;
use toolwit::{Error, ErrorKind, Phase};

/// The mark with which some editors begin a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Maximum number of symbolic links that are followed to a configuration file.
const LINKS_MAX: usize = 40;

/// The command with which an MCP client starts `toolwit mcp`.
pub(super) struct StartCommand {
    /// The name of the server in the client.
    pub(super) name: String,
    pub(super) program: String,
    pub(super) arguments: Vec<String>,
}

/// Adds the server to the text of a configuration, and returns the new text. Replaces an entry of the same name.
///
/// # Errors
/// If the existing text is not a JSON object or a TOML document, or if its value for the servers is not an object or a
/// table.
pub(super) fn with_server(existing: &str, form: EntryForm, start_command: &StartCommand) -> Result<String, String> {
    match form {
        EntryForm::Toml => add_to_toml(existing, start_command),
        EntryForm::Plain(key) => add_to_json(existing, key, &start_command.name, command_entry(start_command)),
        EntryForm::Typed(key) => {
            let mut entry = Map::from_iter([("type".to_owned(), json!("stdio"))]);
            entry.extend(command_entry(start_command));
            add_to_json(existing, key, &start_command.name, entry)
        }
        EntryForm::OneList => {
            let program = [start_command.program.clone()].into_iter();
            let command: Vec<_> = program.chain(start_command.arguments.iter().cloned()).collect();
            let entry = [
                ("type", json!("local")),
                ("command", json!(command)),
                ("enabled", json!(true)),
            ];
            let entry = entry.into_iter().map(|(key, value)| (key.to_owned(), value));
            add_to_json(existing, "mcp", &start_command.name, entry.collect())
        }
    }
}

fn command_entry(start_command: &StartCommand) -> Map<String, Value> {
    let entry = [
        ("command", json!(start_command.program)),
        ("args", json!(start_command.arguments)),
    ];
    entry.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn add_to_json(existing: &str, key: &str, name: &str, entry: Map<String, Value>) -> Result<String, String> {
    JsonText::parse(existing)?.with_member(key, name, &Value::Object(entry))
}

fn add_to_toml(existing: &str, start_command: &StartCommand) -> Result<String, String> {
    let content = existing.trim_start_matches(BYTE_ORDER_MARK);
    let byte_order_mark = &existing[..existing.len() - content.len()];
    let mut document: DocumentMut = content
        .parse()
        .map_err(|error: toml_edit::TomlError| format!("it is not valid TOML ({})", error.message()))?;
    let servers = document.entry("mcp_servers").or_insert_with(|| {
        let mut table = toml_edit::Table::new();
        table.set_implicit(true);
        toml_edit::Item::Table(table)
    });
    let servers = servers.as_table_like_mut().ok_or("`mcp_servers` is not a table")?;
    let mut entry = toml_edit::Table::new();
    entry.insert("command", toml_edit::value(start_command.program.as_str()));
    let arguments: toml_edit::Array = start_command.arguments.iter().map(String::as_str).collect();
    entry.insert("args", toml_edit::value(arguments));
    servers.insert(&start_command.name, toml_edit::Item::Table(entry));
    Ok(format!("{byte_order_mark}{document}"))
}

/// Reads a configuration file. Returns an empty text if the file does not exist.
///
/// # Errors
/// If the file exists and cannot be read.
pub(super) fn read(path: &Path) -> Result<String, Error> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(file_error(path, "read", &error)),
    }
}

/// Writes a configuration file. Replaces the file in one step, so that a client never reads an incomplete file. If the path is
/// a symbolic link, the file behind it is replaced or created, and the link stays.
///
/// # Errors
/// If the file cannot be written, or is read-only.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let result = file_behind_links(path).and_then(|target| {
        // The file is replaced, for which the permissions of the directory would suffice.
        match OpenOptions::new().append(true).open(&target) {
            Ok(file) if file.metadata()?.permissions().readonly() => return Err(read_only()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        StagedFile::write_with_same_permissions(&target, text.as_bytes()).and_then(StagedFile::commit)
    });
    result.map_err(|error| file_error(path, "written", &error))
}

/// Returns the path of the file to which a path leads, which may not exist yet.
///
/// # Errors
/// If there are too many links, or the directory of the file behind a link does not exist.
fn file_behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut file = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = fs::read_link(&file) else {
            return Ok(file);
        };
        // A relative target begins at the directory of the link.
        let directory = file.parent().unwrap_or(Path::new("")).to_owned();
        file = directory.join(target);
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        if parent.is_some_and(|parent| !parent.is_dir()) {
            let message = format!("it is a link to `{}`, whose directory does not exist", file.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is behind too many links",
    ))
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only")
}

fn file_error(path: &Path, action: &str, error: &io::Error) -> Error {
    let message = format!("the configuration `{}` cannot be {action}: {error}", path.display());
    Error::new(ErrorKind::Io, Phase::Registry, message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn start_command() -> StartCommand {
        StartCommand {
            name: "toolwit".to_owned(),
            program: "/bin/toolwit".to_owned(),
            arguments: vec!["mcp".to_owned()],
        }
    }

    #[test]
    fn other_servers_and_settings_stay_as_they_are() {
        let existing = r#"{"theme": "dark", "mcpServers": {"other": {"command": "x"}, "toolwit": {"command": "old"}}}"#;
        let text = with_server(existing, EntryForm::Plain("mcpServers"), &start_command()).unwrap();
        let expected = json!({
            "theme": "dark",
            "mcpServers": {"other": {"command": "x"}, "toolwit": {"command": "/bin/toolwit", "args": ["mcp"]}},
        });
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        let toml = "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"\n";
        let text = with_server(toml, EntryForm::Toml, &start_command()).unwrap();
        assert!(text.starts_with(toml), "{text}");
        assert!(
            text.contains("[mcp_servers.toolwit]\ncommand = \"/bin/toolwit\"\nargs = [\"mcp\"]\n"),
            "{text}"
        );
    }

    #[test]
    fn a_new_configuration_has_only_the_server() {
        let one_list = with_server("", EntryForm::OneList, &start_command()).unwrap();
        let entry = json!({"type": "local", "command": ["/bin/toolwit", "mcp"], "enabled": true});
        assert_eq!(
            serde_json::from_str::<Value>(&one_list).unwrap(),
            json!({"mcp": {"toolwit": entry}})
        );
        let typed = with_server("", EntryForm::Typed("servers"), &start_command()).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&typed).unwrap()["servers"]["toolwit"]["type"],
            "stdio"
        );
    }

    #[test]
    fn text_that_cannot_be_extended_is_refused() {
        let error_of = |text: &str, form| with_server(text, form, &start_command()).unwrap_err();
        assert!(error_of("{", EntryForm::Plain("mcpServers")).contains("not valid JSON"));
        assert!(error_of("[]", EntryForm::Plain("mcpServers")).contains("object"));
        assert!(error_of("{\"mcpServers\": 3}", EntryForm::Plain("mcpServers")).contains("`mcpServers`"));
        assert!(error_of("x = ", EntryForm::Toml).contains("TOML"));
        assert!(error_of("mcp_servers = 3", EntryForm::Toml).contains("`mcp_servers`"));
    }

    #[test]
    fn write_replaces_the_file_and_removes_a_leftover_staged_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/mcp.json");
        write(&path, "one").unwrap();
        // A process with the same id was killed while it wrote.
        let leftover = path.with_file_name(format!(".mcp.json.{}.new", std::process::id()));
        fs::write(leftover, "tw").unwrap();
        write(&path, "two").unwrap();
        assert_eq!(read(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        assert_eq!(read(&directory.path().join("missing.json")).unwrap(), "");
    }

    #[test]
    fn comments_and_the_text_of_other_entries_stay() {
        let existing = "// mine\n{\n  \"limit\": 1.0, // one\n  \"mcpServers\": {}\n}\n";
        let text = with_server(existing, EntryForm::Plain("mcpServers"), &start_command()).unwrap();
        assert!(text.starts_with("// mine\n{\n  \"limit\": 1.0, // one\n"), "{text}");
        assert!(text.contains("\"command\": \"/bin/toolwit\""), "{text}");
        let toml = with_server("\u{feff}a = 1.0 # one\n", EntryForm::Toml, &start_command()).unwrap();
        assert!(toml.starts_with("\u{feff}a = 1.0 # one\n"), "{toml}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_the_file_behind_it_is_written() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        symlink("real.json", at("link.json")).unwrap();
        symlink("link.json", at("second.json")).unwrap();
        write(&at("second.json"), "one").unwrap();
        assert_eq!(fs::read_to_string(at("real.json")).unwrap(), "one");
        assert!(at("second.json").is_symlink() && at("link.json").is_symlink());
        symlink("missing/real.json", at("dangling.json")).unwrap();
        let error = write(&at("dangling.json"), "two").unwrap_err();
        assert!(error.to_string().contains("does not exist"), "{error}");
        symlink("cycle.json", at("cycle.json")).unwrap();
        assert!(write(&at("cycle.json"), "two").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_read_only_file_is_not_replaced() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mcp.json");
        fs::write(&path, "one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        assert!(write(&path, "two").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    }
}
