//! The file with the answers that are valid in later conversations.

use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use toolwit::limits::ByteCount;
use toolwit::tool::file::{LockedFile, read_text_file};
use toolwit::tool::{ApprovalStore, RememberedAnswer};
use toolwit::{Error, ErrorKind, Phase};

/// Maximum size of the file, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Maximum size of a stored answer, in bytes. An answer whose scope is exact arguments contains the arguments.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// The file with the answers that are valid in later conversations. Only its owner can read and write it.
pub(crate) struct AnswerFile(PathBuf);

#[derive(Default, Serialize, Deserialize)]
struct AnswerFileContent {
    /// The answers, oldest first.
    answers: Vec<RememberedAnswer>,
}

impl AnswerFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    fn unusable_error(&self, reason: &dyn std::fmt::Display) -> Error {
        let message = format!(
            "the remembered approvals in {} cannot be used: {reason}",
            self.0.display()
        );
        Error::new(ErrorKind::Io, Phase::Registry, message).with_suggestion("remove the file to forget them")
    }

    fn read(&self) -> Result<AnswerFileContent, Error> {
        match read_text_file(&self.0, FILE_BYTES_MAX) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| self.unusable_error(&error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(AnswerFileContent::default()),
            Err(error) => Err(self.unusable_error(&error)),
        }
    }
}

impl AnswerFileContent {
    /// Removes the answers that are no longer valid.
    fn remove_expired(&mut self, now: u64) {
        self.answers
            .retain(|answer| answer.expires_at.is_none_or(|expires_at| expires_at > now));
    }

    /// Returns the text of the file, of at most `bytes_max` bytes. If the text would be larger, removes the oldest
    /// approvals; the user is then asked again about their calls. Denials stay, because without its denial a call could
    /// be allowed by an approval with a wider scope.
    ///
    /// # Errors
    /// If the denials alone are larger than `bytes_max`.
    fn into_text(mut self, bytes_max: u64) -> io::Result<String> {
        loop {
            let text = serde_json::to_string_pretty(&self)?;
            if text.len() as u64 <= bytes_max {
                return Ok(text);
            }
            let excess = text.len() as u64 - bytes_max;
            let mut removed_bytes = 0;
            self.answers.retain(|answer| {
                if removed_bytes >= excess || answer.denied.is_some() {
                    return true;
                }
                removed_bytes += json_size(answer);
                false
            });
            if removed_bytes == 0 {
                return Err(io::Error::other("the file is full of denials, which are not removed"));
            }
        }
    }
}

impl ApprovalStore for AnswerFile {
    fn load(&self) -> Result<Vec<RememberedAnswer>, Error> {
        Ok(self.read()?.answers)
    }

    fn add(&self, answer: &RememberedAnswer) -> Result<(), Error> {
        if json_size(answer) > ANSWER_BYTES_MAX {
            let message = format!(
                "an answer of more than {} is not remembered",
                ByteCount(ANSWER_BYTES_MAX)
            );
            return Err(Error::new(ErrorKind::Io, Phase::Registry, message));
        }
        let file = LockedFile::acquire(&self.0).map_err(|error| self.unusable_error(&error))?;
        let mut content = self.read()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        content.remove_expired(now.as_secs());
        content.answers.push(answer.clone());
        let text = content
            .into_text(FILE_BYTES_MAX)
            .map_err(|error| self.unusable_error(&error))?;
        file.replace(text.as_bytes())
            .map_err(|error| self.unusable_error(&error))
    }
}

/// Returns the size of an answer as JSON on one line, in bytes. The JSON in the file is indented and therefore larger.
fn json_size(answer: &RememberedAnswer) -> u64 {
    serde_json::to_string(answer).map_or(0, |text| text.len() as u64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn answer_with(fields: serde_json::Value) -> RememberedAnswer {
        let mut answer = json!({"tool": "demo#write", "digest": "d", "is_lasting": true});
        answer
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        serde_json::from_value(answer).unwrap()
    }

    fn exact_arguments_answer(length: usize) -> RememberedAnswer {
        answer_with(json!({"arguments": {"exactly": {"text": "x".repeat(length)}}}))
    }

    #[test]
    fn adding_an_answer_removes_expired_answers() {
        let directory = tempfile::tempdir().unwrap();
        let file = AnswerFile::new(directory.path().join("approvals.json"));
        let (expired, valid) = (
            answer_with(json!({"expires_at": 1})),
            answer_with(json!({"expires_at": u64::MAX})),
        );
        for answer in [&expired, &valid] {
            file.add(answer).unwrap();
        }
        file.add(&answer_with(json!({}))).unwrap();
        assert_eq!(file.load().unwrap(), [valid, answer_with(json!({}))]);
    }

    #[test]
    fn a_full_file_loses_its_oldest_approvals_and_no_denials() {
        let denial = answer_with(json!({"denied": "no"}));
        let mut answers = vec![denial.clone()];
        answers.extend((0..20).map(|length| exact_arguments_answer(1_000 + length)));
        let text = AnswerFileContent { answers }.into_text(10_000).unwrap();
        assert!(text.len() <= 10_000);
        let content: AnswerFileContent = serde_json::from_str(&text).unwrap();
        assert_eq!(content.answers[0], denial);
        assert_eq!(
            content.answers.last(),
            Some(&exact_arguments_answer(1_019)),
            "the newest stays"
        );
        assert!(content.answers.len() > 5, "no more than necessary is removed");
        let denials = vec![denial; 200];
        assert!(AnswerFileContent { answers: denials }.into_text(10_000).is_err());
    }

    #[test]
    fn an_answer_with_large_arguments_is_not_stored() {
        let directory = tempfile::tempdir().unwrap();
        let file = AnswerFile::new(directory.path().join("approvals.json"));
        file.add(&exact_arguments_answer(60 << 10)).unwrap();
        assert!(file.add(&exact_arguments_answer(65 << 10)).is_err());
        assert_eq!(file.load().unwrap().len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_to_a_device_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("approvals.json");
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let file = AnswerFile::new(path.clone());
        assert!(file.load().is_err() && file.add(&answer_with(json!({}))).is_err());
        fs::remove_file(&path).unwrap();
        file.add(&answer_with(json!({}))).unwrap();
    }
}
