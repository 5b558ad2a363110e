//! An Aho–Corasick automaton over the secrets of a call: it finds all of them in one pass over a text.
//!
//! The crate `aho-corasick` does not wipe its tables when they are dropped. It also does not report how many bytes of a pattern
//! have been matched. A stream needs this number to know which bytes it can pass on.

use zeroize::{DefaultIsZeroes, Zeroizing};

/// The state of a search: the index of the [`Node`] whose text is the longest suffix of the searched text that is a prefix of a
/// pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SearchState(u32);

/// A state of the automaton: a node in the tree of all patterns. The bytes on the path from the root to the node are the text of
/// the node. The root has the index 0. Since the root is never a child, the index 0 also stands for a missing child or sibling.
#[derive(Clone, Copy, Default)]
struct Node {
    /// The last byte of the node's text.
    byte: u8,
    first_child: u32,
    next_sibling: u32,
    /// The index of the node whose text is the longest proper suffix of this node's text.
    fallback: u32,
    /// The length of the node's text, in bytes.
    depth: u32,
    /// The length of the longest pattern that is a suffix of the node's text, or 0.
    matched_length: u32,
}

impl DefaultIsZeroes for Node {}

/// The automaton. Its tables are wiped from memory when it is dropped.
#[derive(Default)]
pub(super) struct Automaton {
    nodes: Zeroizing<Vec<Node>>,
    /// The child of the root for each byte, or 0. A table for fast access, because most bytes of a text are read at the root.
    root_children: Zeroizing<Vec<u32>>,
}

impl Automaton {
    /// Creates the automaton of some patterns. Without patterns, the automaton allocates nothing, and only
    /// [`Automaton::is_empty`] may be called.
    pub(super) fn new<'a>(patterns: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let node_count_max = 1 + patterns.clone().map(<[u8]>::len).sum::<usize>();
        if node_count_max == 1 {
            return Self::default();
        }
        let mut automaton = Self {
            // Allocated once: a vector that grows leaves copies behind, which are not wiped.
            nodes: Zeroizing::new(Vec::with_capacity(node_count_max)),
            root_children: Zeroizing::new(vec![0; 256]),
        };
        automaton.nodes.push(Node::default());
        for pattern in patterns {
            automaton.insert(pattern);
        }
        automaton.set_fallbacks();
        automaton
    }

    /// Returns whether there are no patterns.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the state after another byte. A search takes linear time, because it follows at most as many fallbacks as the text
    /// has bytes.
    pub(super) fn step(&self, state: SearchState, byte: u8) -> SearchState {
        self.step_and_report(state, byte, || {})
    }

    /// Returns the state after another byte. Calls `on_fallback` for each fallback that is followed.
    fn step_and_report(&self, state: SearchState, byte: u8, mut on_fallback: impl FnMut()) -> SearchState {
        let mut index = state.0;
        while index != 0 {
            if let Some(next) = self.child(index, byte) {
                return SearchState(next);
            }
            index = self.node(index).fallback;
            on_fallback();
        }
        SearchState(self.root_children[usize::from(byte)])
    }

    /// Returns the length of the longest suffix of the searched text that is a prefix of a pattern.
    pub(super) fn depth(&self, state: SearchState) -> usize {
        self.node(state.0).depth as usize
    }

    /// Returns the length of the longest pattern that ends at the last byte of the searched text, or 0.
    pub(super) fn matched_length(&self, state: SearchState) -> usize {
        self.node(state.0).matched_length as usize
    }

    fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    fn child(&self, parent: u32, byte: u8) -> Option<u32> {
        self.children(parent).find(|child| self.node(*child).byte == byte)
    }

    fn children(&self, parent: u32) -> impl Iterator<Item = u32> {
        let non_zero = |index: u32| Some(index).filter(|index| *index != 0);
        let first = non_zero(self.node(parent).first_child);
        std::iter::successors(first, move |child| non_zero(self.node(*child).next_sibling))
    }

    fn insert(&mut self, pattern: &[u8]) {
        let mut index = 0;
        for byte in pattern {
            index = match self.child(index, *byte) {
                Some(child) => child,
                None => self.add_child(index, *byte),
            };
        }
        let end = &mut self.nodes[index as usize];
        end.matched_length = end.depth;
    }

    fn add_child(&mut self, parent: u32, byte: u8) -> u32 {
        // The secrets of a call have far fewer than 2^32 bytes.
        let child = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let parent = &mut self.nodes[parent as usize];
        let node = Node {
            byte,
            next_sibling: parent.first_child,
            depth: parent.depth + 1,
            ..Node::default()
        };
        parent.first_child = child;
        if parent.depth == 0 {
            self.root_children[usize::from(byte)] = child;
        }
        self.nodes.push(node);
        child
    }

    /// Sets the fallback of each node, and adds the patterns that end at a fallback to `matched_length`. Visits the nodes in the
    /// order of their depth, because the fallback of a node is less deep and must be complete before.
    fn set_fallbacks(&mut self) {
        let mut level: Vec<u32> = self.children(0).collect();
        while !level.is_empty() {
            let mut next_level = Vec::new();
            for parent in level {
                let parent_fallback = SearchState(self.node(parent).fallback);
                let children: Vec<u32> = self.children(parent).collect();
                for child in &children {
                    let fallback = self.step(parent_fallback, self.node(*child).byte).0;
                    let suffix_length = self.node(fallback).matched_length;
                    let node = &mut self.nodes[*child as usize];
                    node.fallback = fallback;
                    node.matched_length = node.matched_length.max(suffix_length);
                }
                next_level.extend(children);
            }
            level = next_level;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn automaton(patterns: &[&str]) -> Automaton {
        Automaton::new(patterns.iter().map(|pattern| pattern.as_bytes()))
    }

    /// Returns the end of each match, and the length of the longest pattern that ends there.
    fn matches(automaton: &Automaton, text: &str) -> Vec<(usize, usize)> {
        let mut state = SearchState::default();
        let ends = text.bytes().enumerate().filter_map(|(index, byte)| {
            state = automaton.step(state, byte);
            let length = automaton.matched_length(state);
            (length > 0).then_some((index + 1, length))
        });
        ends.collect()
    }

    #[test]
    fn the_longest_pattern_at_each_end_is_found() {
        let automaton = automaton(&["he", "she", "hers", "his"]);
        assert_eq!(matches(&automaton, "ushers his"), [(4, 3), (6, 4), (10, 3)]);
        assert_eq!(matches(&automaton, "hhe shis"), [(3, 2), (8, 3)]);
        assert!(!automaton.is_empty() && Automaton::new(std::iter::empty()).is_empty());
    }

    #[test]
    fn the_depth_is_the_number_of_matched_bytes_of_a_pattern() {
        let automaton = automaton(&["abcabd"]);
        let mut state = SearchState::default();
        let depths = "xabcabcabd".bytes().map(|byte| {
            state = automaton.step(state, byte);
            automaton.depth(state)
        });
        assert_eq!(depths.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 3, 4, 5, 6]);
    }

    // attack: K3
    #[test]
    fn a_text_takes_at_most_two_steps_for_each_byte() {
        // Long patterns of one repeated byte cause the most fallbacks, if the text matches and then leaves them repeatedly.
        let patterns = [
            "a".repeat(500),
            format!("{}b", "a".repeat(300)),
            format!("b{}", "a".repeat(200)),
        ];
        let automaton = Automaton::new(patterns.iter().map(String::as_bytes));
        for text in [
            "a".repeat(20_000),
            format!("{}c", "a".repeat(499)).repeat(40),
            "ab".repeat(10_000),
        ] {
            let (mut steps, mut state) = (0, SearchState::default());
            for byte in text.bytes() {
                steps += 1;
                state = automaton.step_and_report(state, byte, || steps += 1);
            }
            assert!(steps <= 2 * text.len(), "{steps} steps for {} bytes", text.len());
        }
    }
}
