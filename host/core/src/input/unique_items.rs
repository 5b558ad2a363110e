//! The keyword `uniqueItems`, in linear time.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};

use jsonschema::json::cmp;
use serde_json::{Number, Value};

/// Returns whether all items differ, as JSON Schema compares them: `1` equals `1.0`.
///
/// The check of `jsonschema` takes quadratic time for items that its hash does not distinguish, such as `[[1], 2]` and
/// `[1, [2]]`. The hash of [`Item`] depends on the structure. A [`HashSet`] hashes with a random key, so that the author of the
/// arguments cannot choose items with equal hashes.
pub(super) fn all_distinct(items: &[Value]) -> bool {
    let mut distinct = HashSet::with_capacity(items.len());
    items.iter().all(|item| distinct.insert(Item(item)))
}

/// An item that is compared and hashed by the equality of JSON Schema.
struct Item<'a>(&'a Value);

impl PartialEq for Item<'_> {
    fn eq(&self, other: &Self) -> bool {
        cmp::equal(self.0, other.0)
    }
}

impl Eq for Item<'_> {}

impl Hash for Item<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The first hashed number distinguishes the types. For numbers, `hash_number` hashes 2, 3 or 4 first.
        match self.0 {
            Value::Null => 0_u8.hash(state),
            Value::Bool(value) => (1_u8, value).hash(state),
            Value::Number(number) => hash_number(number, state),
            Value::String(text) => (5_u8, text).hash(state),
            Value::Array(items) => {
                (6_u8, items.len()).hash(state);
                items.iter().for_each(|item| Item(item).hash(state));
            }
            Value::Object(fields) => {
                (7_u8, fields.len()).hash(state);
                let mut sorted: Vec<_> = fields.iter().collect();
                sorted.sort_unstable_by_key(|(name, _)| *name);
                for (name, field) in sorted {
                    name.hash(state);
                    Item(field).hash(state);
                }
            }
        }
    }
}

/// Hashes equal numbers to the same value, also if one is an integer and one a float. The first hashed number
/// is 2 for an integer that fits into `i64`, 3 for a larger one that fits into `u64`, and 4 for any other number.
fn hash_number(number: &Number, state: &mut impl Hasher) {
    // The first integers beyond `i64` and `u64`: 2^63 and 2^64, which an `f64` represents exactly.
    const I64_END: f64 = 9_223_372_036_854_775_808.0;
    const U64_END: f64 = 18_446_744_073_709_551_616.0;
    if let Some(integer) = number.as_i64() {
        return (2_u8, integer).hash(state);
    }
    if let Some(integer) = number.as_u64() {
        return (3_u8, integer).hash(state);
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked"
    )]
    if float.fract() != 0.0 {
        (4_u8, float.to_bits()).hash(state);
    } else if (-I64_END..I64_END).contains(&float) {
        (2_u8, float as i64).hash(state);
    } else if (I64_END..U64_END).contains(&float) {
        (3_u8, float as u64).hash(state);
    } else {
        (4_u8, float.to_bits()).hash(state);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::hash::DefaultHasher;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn hash(value: &Value) -> u64 {
        let mut hasher = DefaultHasher::new();
        Item(value).hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn equal_values_have_the_same_hash_and_similar_lists_have_different_hashes() {
        for (first, second) in [
            (json!(1), json!(1.0)),
            (json!(0), json!(-0.0)),
            (json!(-3), json!(-3.0)),
            (json!(1_u64 << 63), json!(9_223_372_036_854_775_808.0)),
            (json!({"a": 1, "b": [2]}), json!({"b": [2.0], "a": 1})),
        ] {
            assert!(cmp::equal(&first, &second), "{first} {second}");
            assert_eq!(hash(&first), hash(&second), "{first} {second}");
            assert!(!all_distinct(&[first, json!("between"), second]));
        }
        let similar = [
            json!([[1], 2]),
            json!([1, [2]]),
            json!([1, 2]),
            json!([[], 1, 2]),
            json!([[1, 2]]),
        ];
        assert!(all_distinct(&similar));
        let hashes: HashSet<u64> = similar.iter().map(hash).collect();
        assert_eq!(hashes.len(), similar.len());
    }

    proptest! {
        #[test]
        fn all_distinct_agrees_with_pairwise_comparison(numbers in proptest::collection::vec(-3_i8..3, 0..8)) {
            let items: Vec<Value> = numbers
                .iter()
                .enumerate()
                .map(|(index, number)| if index % 2 == 0 { json!([number]) } else { json!([f64::from(*number)]) })
                .collect();
            let pairwise = (0..items.len())
                .all(|index| items[..index].iter().all(|earlier| !cmp::equal(&items[index], earlier)));
            prop_assert_eq!(all_distinct(&items), pairwise);
        }
    }
}
