//! Words that a search ignores or gives less weight.

/// Returns whether a word is omitted from all texts.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Returns whether a word is a filler: a number, or a word that is common in requests. A filler does not become important by being
/// rare among the tools.
pub(super) fn is_filler(word: &str) -> bool {
    FILLERS.binary_search(&word).is_ok() || word.bytes().all(|byte| byte.is_ascii_digit())
}

const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "because", "been",
    "before", "being", "both", "but", "by", "can", "could", "d", "did", "do", "does", "doing", "don", "down", "during",
    "each", "else", "for", "from", "further", "had", "has", "have", "having", "he", "her", "here", "hers", "him",
    "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "ll", "m", "may", "me", "might", "more", "most",
    "must", "my", "no", "nor", "not", "of", "off", "on", "once", "only", "or", "other", "our", "ours", "out", "over",
    "own", "re", "s", "same", "shall", "she", "should", "so", "some", "such", "t", "than", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "those", "through", "to", "too", "under", "until", "up", "us",
    "ve", "very", "was", "we", "were", "what", "when", "where", "which", "while", "who", "whom", "why", "will", "with",
    "would", "you", "your", "yours",
];

const FILLERS: &[&str] = &[
    "able",
    "additional",
    "advanced",
    "along",
    "anything",
    "around",
    "ask",
    "assist",
    "available",
    "based",
    "best",
    "better",
    "check",
    "come",
    "comprehensive",
    "current",
    "currently",
    "detailed",
    "easy",
    "ensure",
    "every",
    "everything",
    "example",
    "explore",
    "find",
    "get",
    "getting",
    "give",
    "go",
    "goes",
    "going",
    "good",
    "got",
    "great",
    "happy",
    "hello",
    "help",
    "hey",
    "hi",
    "include",
    "includes",
    "including",
    "interested",
    "interesting",
    "know",
    "let",
    "like",
    "long",
    "look",
    "looking",
    "love",
    "made",
    "main",
    "make",
    "making",
    "many",
    "maybe",
    "much",
    "multiple",
    "near",
    "need",
    "needed",
    "needs",
    "new",
    "next",
    "nice",
    "now",
    "offer",
    "one",
    "online",
    "past",
    "people",
    "place",
    "please",
    "popular",
    "possible",
    "potential",
    "provide",
    "provides",
    "providing",
    "quickly",
    "really",
    "receive",
    "recommend",
    "recommended",
    "related",
    "relevant",
    "request",
    "right",
    "see",
    "seem",
    "show",
    "somebody",
    "someone",
    "something",
    "specific",
    "start",
    "suggest",
    "support",
    "sure",
    "take",
    "tell",
    "thank",
    "thanks",
    "thing",
    "things",
    "think",
    "three",
    "today",
    "tomorrow",
    "tonight",
    "try",
    "trying",
    "two",
    "unique",
    "use",
    "using",
    "various",
    "want",
    "way",
    "wish",
    "within",
    "wonder",
    "wondering",
    "work",
    "yesterday",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_disjoint() {
        for list in [STOP_WORDS, FILLERS] {
            assert!(list.is_sorted());
            assert!(list.iter().all(|word| list.binary_search(word).is_ok()));
        }
        assert!(
            !STOP_WORDS.iter().any(|word| is_filler(word)),
            "no word is in both lists"
        );
    }
}
