//! The configuration file of an MCP client.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};
use toml_edit::DocumentMut;

use super::client::EntryForm;
use toolwit::tool::file::StagedFile;
use toolwit::{Error, ErrorKind, Phase};

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
    let mut root: Value = if existing.trim().is_empty() {
        json!({})
    } else {
        serde_json::from_str(existing.trim_start_matches('\u{feff}'))
            .map_err(|error| format!("it is not plain JSON ({error}), perhaps because of comments"))?
    };
    let fields = root.as_object_mut().ok_or("it is not a JSON object")?;
    let servers = fields.entry(key).or_insert_with(|| json!({}));
    let servers = servers.as_object_mut().ok_or(format!("`{key}` is not a JSON object"))?;
    servers.insert(name.to_owned(), Value::Object(entry));
    Ok(format!("{root:#}\n"))
}

fn add_to_toml(existing: &str, start_command: &StartCommand) -> Result<String, String> {
    let mut document: DocumentMut = existing
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
    Ok(document.to_string())
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

/// Writes a configuration file. Replaces the file in one step, so that a client never reads an incomplete file.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    // If the path is a symbolic link, its target is replaced, and the link stays.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let result = StagedFile::write_with_same_permissions(&target, text.as_bytes()).and_then(StagedFile::commit);
    result.map_err(|error| file_error(path, "written", &error))
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
        assert!(error_of("{ // mine\n}", EntryForm::Plain("mcpServers")).contains("comments"));
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
}
