//! The recognition of forms that ask for a password or another secret.
//!
//! A plugin must not ask a person for a secret: the operator stores secrets, and the host inserts them without showing them to a
//! plugin. The recognition is a list of words, so it also refuses some harmless texts; their authors can use other words.

use super::form_field::FieldKind;

/// Words and phrases that name a secret in the name, the title or the description of a field, in the form of [`normalized`].
const FIELD_PHRASES: [&str; 49] = [
    "password",
    "passwords",
    "passwd",
    "pwd",
    "passphrase",
    "pass phrase",
    "passcode",
    "pass code",
    "pass word",
    "secret",
    "secrets",
    "credential",
    "credentials",
    "api key",
    "apikey",
    "access key",
    "accesskey",
    "private key",
    "privatekey",
    "secret key",
    "secretkey",
    "ssh key",
    "signing key",
    "encryption key",
    "bearer",
    "cookie",
    "pin",
    "otp",
    "totp",
    "2fa",
    "mfa",
    "cvv",
    "cvc",
    "ssn",
    "credit card",
    "card number",
    "cardnumber",
    "security code",
    "verification code",
    "one time code",
    "recovery code",
    "recovery phrase",
    "seed phrase",
    "auth code",
    "passwort",
    "kennwort",
    "wachtwoord",
    "mot de passe",
    "senha",
];

/// Further words of fields with a text. In a field with a number, they name an amount, such as a number of tokens.
const TEXT_FIELD_PHRASES: [&str; 4] = ["token", "tokens", "accesstoken", "authtoken"];

/// Phrases that name a secret in the message of a form, in the form of [`normalized`].
const MESSAGE_PHRASES: [&str; 27] = [
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "pass phrase",
    "passcode",
    "pass word",
    "api key",
    "apikey",
    "access key",
    "access token",
    "auth token",
    "your token",
    "private key",
    "secret key",
    "your secret",
    "credentials",
    "credit card",
    "card number",
    "your pin",
    "pin code",
    "one time code",
    "verification code",
    "recovery phrase",
    "seed phrase",
    "passwort",
    "kennwort",
];

/// Words that are searched in texts without word boundaries: those of languages without spaces, and words whose letters were
/// separated.
const PARTS: [&str; 12] = [
    "password",
    "passphrase",
    "passwort",
    "kennwort",
    "motdepasse",
    "contraseña",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
    "apikey",
];

/// Returns whether a text of a field asks for a secret.
pub(super) fn asks_for_secret(text: &str, kind: &FieldKind) -> bool {
    let further_phrases = match kind {
        FieldKind::Text { .. } => &TEXT_FIELD_PHRASES[..],
        _ => &[],
    };
    contains_part(text) || contains_phrase(text, &FIELD_PHRASES) || contains_phrase(text, further_phrases)
}

/// Returns whether the message of a form asks for a secret.
pub(super) fn message_asks_for_secret(message: &str) -> bool {
    contains_part(message) || contains_phrase(message, &MESSAGE_PHRASES)
}

fn contains_phrase(text: &str, phrases: &[&str]) -> bool {
    [false, true].into_iter().any(|reads_digits_as_letters| {
        let text = format!(" {} ", normalized(text, reads_digits_as_letters));
        phrases.iter().any(|phrase| text.contains(&format!(" {phrase} ")))
    })
}

fn contains_part(text: &str) -> bool {
    [false, true].into_iter().any(|reads_digits_as_letters| {
        // Texts that are read as one word have no boundaries, so a text in lower case of another script is compared too.
        let lower = text.to_lowercase();
        let compact = normalized(text, reads_digits_as_letters).replace(' ', "");
        PARTS
            .iter()
            .any(|part| lower.contains(part) || is_spelled_out(text, part, &compact))
    })
}

/// Returns whether a text spells a word with separated letters, such as `p-a-s-s-w-o-r-d`, or joins it to other words, such as
/// `mypassword2`. Ordinary words that only contain the letters across a word boundary, as in "compass wording", do not count.
fn is_spelled_out(text: &str, part: &str, compact: &str) -> bool {
    if !compact.contains(part) {
        return false;
    }
    let normalized = normalized(text, true);
    let is_inside_a_word = normalized.split(' ').any(|word| word.contains(part));
    let has_single_letters = normalized.split(' ').filter(|word| word.chars().count() == 1).count() >= 3;
    is_inside_a_word || has_single_letters
}

/// Returns the words of a text in lower case, separated by spaces: separators and changes to upper case divide words, and letters
/// that look like Latin letters are replaced.
fn normalized(text: &str, reads_digits_as_letters: bool) -> String {
    let mut words = String::with_capacity(text.len());
    let mut was_lower = false;
    for c in text.chars() {
        let c = latin(c, reads_digits_as_letters);
        if !c.is_alphanumeric() {
            words.push(' ');
            was_lower = false;
            continue;
        }
        if c.is_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = c.is_lowercase();
        words.extend(c.to_lowercase());
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the Latin letter that a character looks like, or the character itself.
fn latin(c: char, reads_digits_as_letters: bool) -> char {
    match c {
        // The full-width forms of ASCII characters.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        'а' | 'α' => 'a',
        'А' | 'Α' => 'A',
        'с' | 'ϲ' => 'c',
        'С' => 'C',
        'е' | 'ε' => 'e',
        'Е' | 'Ε' => 'E',
        'і' | 'ι' | 'ı' => 'i',
        'І' | 'Ι' => 'I',
        'к' | 'κ' => 'k',
        'К' | 'Κ' => 'K',
        'о' | 'ο' => 'o',
        'О' | 'Ο' => 'O',
        'р' | 'ρ' => 'p',
        'Р' | 'Ρ' => 'P',
        'ѕ' => 's',
        'Ѕ' => 'S',
        'у' => 'y',
        'У' => 'Y',
        'ԁ' => 'd',
        'ԝ' | 'ω' => 'w',
        '0' if reads_digits_as_letters => 'o',
        '1' | '!' | '|' if reads_digits_as_letters => 'i',
        '3' if reads_digits_as_letters => 'e',
        '4' | '@' if reads_digits_as_letters => 'a',
        '5' | '$' if reads_digits_as_letters => 's',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: FieldKind = FieldKind::Text {
        format: None,
        chars_min: 0,
        chars_max: None,
    };
    const NUMBER: FieldKind = FieldKind::Number {
        is_integer: true,
        min: None,
        max: None,
    };

    #[test]
    fn a_field_for_a_secret_is_recognized_in_many_spellings() {
        for text in [
            "password",
            "Password",
            "userPassword",
            "db_passwd",
            "PASSWORD2",
            "mypassword",
            "p4ssw0rd",
            "p a s s w o r d",
            "p-a-s-s-w-o-r-d",
            "pаsswоrd",
            "ｐａｓｓｗｏｒｄ",
            "apiKey",
            "API-Key",
            "api_key",
            "OPENAI_API_KEY",
            "accessToken",
            "Your token",
            "client secret",
            "Passphrase",
            "PIN",
            "one-time code",
            "Credit card number",
            "Passwort",
            "пароль",
            "密码",
        ] {
            assert!(asks_for_secret(text, &TEXT), "{text}");
        }
    }

    #[test]
    fn an_ordinary_field_is_accepted() {
        for text in [
            "name",
            "pinned",
            "opinion",
            "secretary",
            "tokenizer",
            "compass wording",
            "keyword",
            "keyboard",
            "city",
            "Email address",
            "author",
            "passenger",
        ] {
            assert!(!asks_for_secret(text, &TEXT), "{text}");
        }
        assert!(
            !asks_for_secret("tokens_max", &NUMBER),
            "a number of tokens is an amount"
        );
        assert!(asks_for_secret("pin", &NUMBER));
    }

    #[test]
    fn a_message_that_asks_for_a_secret_is_recognized() {
        for message in [
            "Enter your password:",
            "Paste the API key of the service",
            "What is your PIN?",
        ] {
            assert!(message_asks_for_secret(message), "{message}");
        }
        for message in [
            "Which token should be replaced?",
            "Which pin of the board is it?",
            "Delete the secret garden?",
        ] {
            assert!(!message_asks_for_secret(message), "{message}");
        }
    }
}
