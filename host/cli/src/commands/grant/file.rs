//! The file of grants and its log, as the operator's commands find and change them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table};

use toolwit::grants::Grants;
use toolwit::sandbox::private_file;
use toolwit::sandbox::read_grants_file;
use toolwit::{Error, ErrorKind, Phase};

/// A file of grants that is being changed. Comments and order stay as they are.
pub(super) struct GrantsFile {
    path: PathBuf,
    document: DocumentMut,
    pub(super) grants: Grants,
    /// Held until the change is written: of two changes at once, none is lost.
    _lock: Option<fs::File>,
}

impl GrantsFile {
    /// Reads the file, to be looked at.
    pub(super) fn open(path: PathBuf) -> Result<Self, Error> {
        Self::read(path, None)
    }

    /// Reads the file, or begins one, to be changed: nobody else changes it meanwhile.
    pub(super) fn open_to_change(path: PathBuf) -> Result<Self, Error> {
        let unlocked = |error: io::Error| failed(&path, format!("could not be locked: {error}"));
        make_directory(&path).map_err(unlocked)?;
        let lock = private_file::lock(&beside(&path, ".lock")).map_err(unlocked)?;
        Self::read(path, Some(lock))
    }

    fn read(path: PathBuf, lock: Option<fs::File>) -> Result<Self, Error> {
        let text = match read_grants_file(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => "version = 1\n".to_owned(),
            Err(error) => return Err(failed(&path, format!("could not be read: {error}"))),
        };
        let grants = Grants::parse(text.as_bytes()).map_err(|error| failed(&path, format!("is wrong: {error}")))?;
        let document = text
            .parse()
            .map_err(|error| failed(&path, format!("is wrong: {error}")))?;
        Ok(Self {
            path,
            document,
            grants,
            _lock: lock,
        })
    }

    /// Adds a grant at the end.
    pub(super) fn add(&mut self, grant: Table) -> Result<(), Error> {
        self.tables()?.push(grant);
        Ok(())
    }

    /// Removes every grant of a plugin. Returns how many there were.
    pub(super) fn remove(&mut self, plugin: &str) -> Result<usize, Error> {
        let tables = self.tables()?;
        let before = tables.len();
        tables.retain(|grant| grant.get("plugin").and_then(Item::as_str) != Some(plugin));
        Ok(before - tables.len())
    }

    fn tables(&mut self) -> Result<&mut ArrayOfTables, Error> {
        let item = self
            .document
            .entry("grant")
            .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        item.as_array_of_tables_mut().ok_or_else(|| {
            failed(&self.path, "holds its grants in one line".to_owned())
                .with_suggestion("write each as a table of its own, `[[grant]]`")
        })
    }

    /// Writes the file as a whole, when it still can be read, and a line of what was done to the log beside it.
    pub(super) fn save(&self, action: &str, plugin: &str, what: &[String]) -> Result<(), Error> {
        let text = self.document.to_string();
        Grants::parse(text.as_bytes()).map_err(|error| {
            Error::new(
                ErrorKind::Configuration,
                Phase::Registry,
                format!("this cannot be granted: {error}"),
            )
        })?;
        let unwritable = |error: io::Error| failed(&self.path, format!("could not be written: {error}"));
        make_directory(&self.path).map_err(unwritable)?;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs());
        let line: Json = json!({"time": now, "action": action, "plugin": plugin, "what": what});
        // What could not be noted is not done.
        private_file::append_line(&beside(&self.path, ".log"), &line.to_string()).map_err(unwritable)?;
        private_file::replace(&self.path, text.as_bytes()).map_err(unwritable)
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    directory.map_or(Ok(()), fs::create_dir_all)
}

/// The log of changes, and the lock, lie beside the grants.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

fn failed(path: &Path, why: String) -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        format!("the grants {} {why}", path.display()),
    )
}
