//! Slugs for URLs and file names.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Creates a slug with a maximum length, cut between words if the first word fits.
#[must_use]
pub fn slugify(text: &str, characters_max: Option<usize>) -> String {
    let words = words(text);
    let Some(limit) = characters_max else {
        return words.join("-");
    };
    let mut slug = String::new();
    let mut length = 0;
    for word in words {
        let separator = usize::from(!slug.is_empty());
        let word_length = word.chars().count();
        if length + separator + word_length > limit {
            if slug.is_empty() {
                slug = word.chars().take(limit).collect();
            }
            break;
        }
        if separator == 1 {
            slug.push('-');
        }
        slug.push_str(&word);
        length += separator + word_length;
    }
    slug
}

/// Returns the words in lower case, without accents. Apostrophes are removed; other characters separate words.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for letter in text
        .nfkd()
        .filter(|letter| !is_latin_mark(*letter))
        .flat_map(char::to_lowercase)
    {
        match ascii_spelling(letter) {
            Some(letters) => word.push_str(letters),
            None if letter.is_alphanumeric() || is_combining_mark(letter) => word.push(letter),
            None if matches!(letter, '\'' | '’') => {}
            None if word.is_empty() => {}
            None => words.push(std::mem::take(&mut word)),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    // The remaining marks belong to scripts that need them.
    words.into_iter().map(|word| word.nfc().collect()).collect()
}

/// Returns whether a character is an accent of Latin, Greek or Cyrillic letters. Marks of other scripts are part of the word.
fn is_latin_mark(letter: char) -> bool {
    matches!(letter, '\u{300}'..='\u{36f}')
}

/// Returns the ASCII spelling of a letter that has no Unicode decomposition.
fn ascii_spelling(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'ł' => "l",
        'þ' => "th",
        'ħ' => "h",
        'ı' => "i",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_and_ligatures_become_plain_letters() {
        assert_eq!(slugify("Crème brûlée & Straße!", None), "creme-brulee-strasse");
        assert_eq!(slugify("Łódź — Øresund, Þór ﬁn", None), "lodz-oresund-thor-fin");
        assert_eq!(slugify("  Don’t -- panic  ", None), "dont-panic");
    }

    #[test]
    fn other_scripts_are_unchanged() {
        assert_eq!(slugify("東京 2024", None), "東京-2024");
        assert_eq!(slugify("हिन्दी भाषा", None), "हिन्दी-भाषा");
        assert_eq!(slugify("ガイド", None), "ガイド");
    }

    #[test]
    fn a_limit_cuts_between_words_if_it_can() {
        assert_eq!(slugify("one two three", Some(9)), "one-two");
        assert_eq!(slugify("one two three", Some(7)), "one-two");
        assert_eq!(slugify("extraordinary", Some(5)), "extra");
        assert_eq!(slugify("one", Some(0)), "");
        assert_eq!(slugify("!!!", Some(3)), "");
    }
}
