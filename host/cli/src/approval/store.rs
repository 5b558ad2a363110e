//! The file with the answers that are valid in later conversations.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use toolwit::sandbox::LockedFile;
use toolwit::tool::{ApprovalStore, RememberedAnswer};
use toolwit::{Error, ErrorKind, Phase};

/// Maximum size of the file, in bytes.
const BYTES_MAX: u64 = 4 << 20;

/// The file with the answers that are valid in later conversations. Only its owner can read and write it.
pub(crate) struct AnswerFile(PathBuf);

#[derive(Default, Serialize, Deserialize)]
struct Content {
    answers: Vec<RememberedAnswer>,
}

impl AnswerFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    fn failed(&self, why: &dyn std::fmt::Display) -> Error {
        let message = format!("the remembered approvals in {} cannot be used: {why}", self.0.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_suggestion("remove the file to forget them")
    }

    fn read(&self) -> Result<Content, Error> {
        match fs::metadata(&self.0) {
            Ok(metadata) if metadata.len() > BYTES_MAX => return Err(self.failed(&"the file is too large")),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::default()),
            Err(error) => return Err(self.failed(&error)),
        }
        let text = fs::read_to_string(&self.0).map_err(|error| self.failed(&error))?;
        serde_json::from_str(&text).map_err(|error| self.failed(&error))
    }
}

impl ApprovalStore for AnswerFile {
    fn load(&self) -> Result<Vec<RememberedAnswer>, Error> {
        Ok(self.read()?.answers)
    }

    fn add(&self, answer: &RememberedAnswer) -> Result<(), Error> {
        let file = LockedFile::acquire(&self.0).map_err(|error| self.failed(&error))?;
        let mut content = self.read()?;
        content.answers.push(answer.clone());
        let text = serde_json::to_string_pretty(&content).map_err(|error| self.failed(&error))?;
        file.replace(text.as_bytes()).map_err(|error| self.failed(&error))
    }
}
