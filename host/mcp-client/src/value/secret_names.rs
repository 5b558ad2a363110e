//! Names of settings whose values are secrets.

/// The endings of the words of a name whose value is a secret.
const SECRET_ENDINGS: [&str; 8] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "credential",
    "auth",
];

/// Returns whether the value of a variable, header or setting with this name is a secret, even if it is literal text of the
/// configuration: a word of the name ends like one of [`SECRET_ENDINGS`], in the singular or the plural.
pub(crate) fn names_a_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| {
        let singular = word.strip_suffix('s').unwrap_or(word);
        word.starts_with("authorization")
            || SECRET_ENDINGS
                .iter()
                .any(|ending| word.ends_with(ending) || singular.ends_with(ending))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_keys_tokens_and_passwords_name_secrets() {
        for name in [
            "API_KEY",
            "GITHUB_TOKEN",
            "authorization",
            "x-api-key",
            "apiToken",
            "DB_PASSWORD",
            "AWS_CREDENTIALS",
            "PROXY_AUTH",
        ] {
            assert!(names_a_secret(name), "{name}");
        }
        for name in [
            "",
            "HOME",
            "LANGUAGE_NAME",
            "AUTHOR",
            "KEYBOARD",
            "TOKENIZERS_PARALLELISM",
            "PORT",
        ] {
            assert!(!names_a_secret(name), "{name}");
        }
    }
}
