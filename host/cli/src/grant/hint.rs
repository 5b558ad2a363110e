//! The command that grants what an error says is missing.

use std::borrow::Cow;
use std::error::Error as StdError;

use toolwit::sandbox::MissingGrant;
use toolwit::{Error, ErrorKind};

/// Replaces the suggestion of an error by the command that fixes it, if a grant is missing.
pub(crate) fn with_command(error: &Error) -> Cow<'_, Error> {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(missing) = cause.downcast_ref::<MissingGrant>() {
            return Cow::Owned(error.clone().with_suggestion(suggestion(error.kind, missing)));
        }
        source = cause.source();
    }
    Cow::Borrowed(error)
}

fn suggestion(kind: ErrorKind, missing: &MissingGrant) -> String {
    let plugin = shell_word(&missing.plugin);
    if kind == ErrorKind::MissingKey {
        let value = shell_word(&missing.value);
        return format!(
            "ask the user for it, then run `toolwit grant {plugin} --env {value}=VALUE`, or store it as a secret"
        );
    }
    let flag = match missing.key {
        "tools" => "tool",
        key => key,
    };
    format!("toolwit grant {plugin} --{flag} {}", shell_word(&missing.value))
}

/// Quotes a word for a shell: people copy the command, and a guest chooses the value.
fn shell_word(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,#".contains(c);
    // A `#` at the start of a word begins a comment.
    if !word.is_empty() && !word.starts_with('#') && word.chars().all(is_plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // attack: C21
    #[test]
    fn a_copied_command_executes_nothing_of_its_values() {
        assert_eq!(shell_word("text#slugify"), "text#slugify");
        assert_eq!(shell_word("x; touch /tmp/y #"), "'x; touch /tmp/y #'");
        assert_eq!(shell_word("GET http://h/$(id)\""), "'GET http://h/$(id)\"'");
        assert_eq!(shell_word("it's `id`"), r"'it'\''s `id`'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("# gone"), "'# gone'");
    }
}
