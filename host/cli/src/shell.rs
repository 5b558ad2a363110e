//! Commands in hints. People copy them into a shell, so words from plugins, manifests and projects are quoted.

use std::borrow::Cow;
use std::fmt::{self, Display};

use toolwit::tool::text::is_printable;

/// A command of `toolwit` that a hint suggests, with its words quoted for a shell.
///
/// ```text
/// toolwit grant settings --config 'greeting; id=VALUE'
/// toolwit revoke -- -name-that-looks-like-an-option
/// ```
#[derive(Clone, Debug)]
pub(crate) struct SuggestedCommand {
    /// The program and the subcommand, already quoted.
    program_and_subcommand: String,
    /// The operands, not quoted yet.
    operands: Vec<String>,
    /// The options with their values, already quoted.
    options: Vec<String>,
}

impl SuggestedCommand {
    /// Creates a command without arguments. The subcommand may have several words, such as `secret set`.
    pub(crate) fn new(subcommand: &'static str) -> Self {
        Self::of_program("toolwit", subcommand)
    }

    /// Creates a command without arguments, for a program that was started under another name.
    pub(crate) fn of_program(program: &str, subcommand: &'static str) -> Self {
        Self {
            program_and_subcommand: format!("{} {subcommand}", shell_word(program)),
            operands: Vec::new(),
            options: Vec::new(),
        }
    }

    /// Adds an operand.
    pub(crate) fn operand(mut self, word: &str) -> Self {
        self.operands.push(word.to_owned());
        self
    }

    /// Adds an option without a value.
    pub(crate) fn flag(mut self, name: &str) -> Self {
        self.options.push(format!("--{}", shell_word(name)));
        self
    }

    /// Adds an option with its value.
    pub(crate) fn option(mut self, name: &str, value: &str) -> Self {
        // After a space, a value that begins with a hyphen would be read as another option.
        let separator = if value.starts_with('-') { '=' } else { ' ' };
        self.options
            .push(format!("--{}{separator}{}", shell_word(name), shell_word(value)));
        self
    }
}

impl Display for SuggestedCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operands = self.operands.iter().map(|word| shell_word(word));
        let options = self.options.iter().map(|option| Cow::Borrowed(option.as_str()));
        // Without `--`, an operand that begins with a hyphen would be read as an option.
        let words: Vec<_> = if self.operands.iter().any(|word| word.starts_with('-')) {
            options.chain([Cow::Borrowed("--")]).chain(operands).collect()
        } else {
            operands.chain(options).collect()
        };
        f.write_str(&self.program_and_subcommand)?;
        words.iter().try_for_each(|word| write!(f, " {word}"))
    }
}

/// Returns a word as a shell accepts it: in quotes, if a shell could interpret one of its characters.
pub(crate) fn shell_word(word: &str) -> Cow<'_, str> {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,#".contains(c);
    // A `#` at the start of a word begins a comment, and some shells look up a program after `=`.
    if word
        .chars()
        .any(|c| c != ' ' && (!is_printable(c) || c.is_whitespace()))
    {
        return Cow::Owned(escaped_word(word));
    }
    if !word.is_empty() && !word.starts_with(['#', '=']) && word.chars().all(is_safe) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

/// Returns a word in the quotes in which shells replace escapes. Otherwise, the word could contain characters that the person who
/// copies the command does not see.
fn escaped_word(word: &str) -> String {
    let mut escaped = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\'' | '\\' => escaped.extend(['\\', c]),
            c if c == ' ' || is_printable(c) && !c.is_whitespace() => escaped.push(c),
            c => escaped.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    escaped.push('\'');
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    // attack: C21
    #[test]
    fn a_suggested_command_does_not_execute_its_values() {
        assert_eq!(shell_word("text#slugify"), "text#slugify");
        assert_eq!(shell_word("x; touch /tmp/y #"), "'x; touch /tmp/y #'");
        assert_eq!(shell_word("GET http://h/$(id)\""), "'GET http://h/$(id)\"'");
        assert_eq!(shell_word("it's `id`"), r"'it'\''s `id`'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("# gone"), "'# gone'");
        assert_eq!(shell_word("=id"), "'=id'");
        assert_eq!(shell_word("it's\u{200b} a\nb"), r"$'it\'s\U0000200b a\U0000000ab'");
    }

    // attack: J2
    #[test]
    fn a_suggested_command_does_not_take_its_values_for_options() {
        let grant = |plugin: &str, value: &str| SuggestedCommand::new("grant").operand(plugin).option("config", value);
        assert_eq!(grant("a", "b=VALUE").to_string(), "toolwit grant a --config b=VALUE");
        assert_eq!(grant("a", "-b=VALUE").to_string(), "toolwit grant a --config=-b=VALUE");
        assert_eq!(
            grant("--any-version", "a b=VALUE").to_string(),
            "toolwit grant --config 'a b=VALUE' -- --any-version"
        );
    }
}
