//! The arguments of a call as a validator reads them, with a budget of steps.
//!
//! JSON Schema calls the validated value the instance. A validator of `jsonschema` cannot be stopped, and a schema and an
//! instance together can cause billions of checks. The validator reads the instance only through the traits of
//! [`jsonschema::json`], and their implementation here takes steps from a budget. When the budget is used up, arrays and
//! objects have no more elements and strings are empty. The validator then ends after at most one more pass over its schema, and
//! [`ValidationBudget::run`] discards its outcome.

use std::borrow::Cow;
use std::cell::Cell;
use std::slice;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, cmp};
use serde_json::{Map, Number, Value, map};

use super::unique_items::all_distinct;

/// The length of a string that costs one step to read, in bytes.
const TEXT_BYTES_PER_STEP: u64 = 64;

/// The memory that a validator may allocate for the name of a member, in addition to its length, in bytes.
const NAME_BYTES: u64 = 64;

thread_local! {
    /// The budget of the validation that this thread runs. A [`MeteredValue`] cannot hold the budget, because the validator itself
    /// creates the values for property names, with [`Json::with_string_node`].
    static BUDGET: Cell<ValidationBudget> = const { Cell::new(ValidationBudget::NONE) };
}

/// The steps and the memory that a validation has left, and the costs that depend on the schema.
#[derive(Clone, Copy)]
pub(super) struct ValidationBudget {
    /// The steps that are left.
    pub(super) steps: u64,
    /// The memory that is left for violations, in bytes.
    pub(super) bytes: u64,
    /// The steps that each visited element of an array or object costs.
    pub(super) element_steps: u64,
    /// The steps that each KiB of a string costs, because a pattern of the schema may be matched against the string.
    pub(super) text_steps_per_kib: u64,
    /// The memory that each violation costs, in bytes.
    pub(super) violation_bytes: u64,
}

impl ValidationBudget {
    /// The budget outside of a validation.
    const NONE: Self = Self {
        steps: 0,
        bytes: 0,
        element_steps: 0,
        text_steps_per_kib: 0,
        violation_bytes: 0,
    };

    /// Returns whether both steps and memory are left.
    fn has_remainder(&self) -> bool {
        self.steps > 0 && self.bytes > 0
    }

    /// Runs a validation on this thread, and takes the steps and the memory that the validation uses from this budget. Returns
    /// `None` if the validation uses up the budget.
    pub(super) fn run<T>(&mut self, validate: impl FnOnce() -> T) -> Option<T> {
        let _outer = OuterBudget(BUDGET.replace(*self));
        let outcome = validate();
        *self = BUDGET.get();
        self.has_remainder().then_some(outcome)
    }
}

/// The budget of the enclosing validation on this thread, or [`ValidationBudget::NONE`]. It is restored on drop, also after a
/// panic.
struct OuterBudget(ValidationBudget);

impl Drop for OuterBudget {
    fn drop(&mut self) {
        BUDGET.set(self.0);
    }
}

/// Takes steps from the budget. Returns whether the budget is not used up.
fn take_steps(steps: impl FnOnce(&ValidationBudget) -> u64) -> bool {
    let mut budget = BUDGET.get();
    budget.steps = budget.steps.saturating_sub(steps(&budget));
    BUDGET.set(budget);
    budget.has_remainder()
}

/// Takes memory from the budget. Returns whether the budget is not used up.
fn take_bytes(bytes: impl FnOnce(&ValidationBudget) -> u64) -> bool {
    let mut budget = BUDGET.get();
    budget.bytes = budget.bytes.saturating_sub(bytes(&budget));
    BUDGET.set(budget);
    budget.has_remainder()
}

/// Takes the steps for matching a string, before the match begins. Returns whether the budget is not used up.
fn take_text_steps(text: &str) -> bool {
    let bytes = text.len() as u64;
    take_steps(|budget| {
        let match_steps = bytes.saturating_mul(budget.text_steps_per_kib) / 1024;
        match_steps.saturating_add(1 + bytes / TEXT_BYTES_PER_STEP)
    })
}

/// Returns the number of steps that a comparison of the full value costs.
fn comparison_steps(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / TEXT_BYTES_PER_STEP,
        Value::Array(items) => 1 + items.iter().map(comparison_steps).sum::<u64>(),
        Value::Object(fields) => {
            let names = fields.keys().map(|name| name.len() as u64 / TEXT_BYTES_PER_STEP);
            1 + names.sum::<u64>() + fields.values().map(comparison_steps).sum::<u64>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

/// The JSON representation that `jsonschema` uses for an instance. Reading the instance takes steps from the budget.
pub(super) struct Metered;

impl Json for Metered {
    type Node<'a> = MeteredValue<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, text: &str, f: impl FnOnce(MeteredValue<'_>) -> T) -> T {
        *buffer = Value::String(text.to_owned());
        f(MeteredValue(buffer))
    }
}

/// A value of the instance.
#[derive(Clone)]
pub(super) struct MeteredValue<'a>(pub(super) &'a Value);

impl<'a> Node<'a, Metered> for MeteredValue<'a> {
    type Object = MeteredObject<'a>;
    type Array = MeteredArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<MeteredObject<'a>> {
        take_steps(|_| 1);
        self.0.as_object().map(MeteredObject)
    }

    fn as_array(&self) -> Option<MeteredArray<'a>> {
        take_steps(|_| 1);
        self.0.as_array().map(|items| MeteredArray(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str()?;
        Some(Cow::Borrowed(if take_text_steps(text) { text } else { "" }))
    }

    fn as_number(&self) -> Option<&'a Number> {
        take_steps(|_| 1);
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        take_steps(|_| 1);
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        take_steps(|_| 1);
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        take_steps(|_| 1);
        match self.0 {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        take_steps(|_| comparison_steps(self.0)) && cmp::equal(self.0, expected)
    }

    /// The validator calls this function only for violations, because this implementation overrides the default functions that
    /// would also call it.
    fn to_value(&self) -> Cow<'a, Value> {
        take_bytes(|budget| budget.violation_bytes);
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(std::ptr::from_ref(self.0) as usize))
    }
}

/// An object of the instance.
pub(super) struct MeteredObject<'a>(&'a Map<String, Value>);

impl<'a> Object<'a, Metered> for MeteredObject<'a> {
    type Node = MeteredValue<'a>;
    type MemberName = MeteredName<'a>;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<MeteredValue<'a>> {
        take_steps(|_| 1);
        self.0.get(key).map(MeteredValue)
    }

    fn members(&self) -> Members<'a> {
        Members(self.0.iter())
    }
}

/// The members of an object. The iterator ends when the budget is used up.
pub(super) struct Members<'a>(map::Iter<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (MeteredName<'a>, MeteredValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next().filter(|_| take_steps(|budget| budget.element_steps))?;
        Some((MeteredName(name), MeteredValue(value)))
    }
}

/// The name of a member. The validator reads it once for each pattern against which it matches the name.
pub(super) struct MeteredName<'a>(&'a str);

impl AsRef<str> for MeteredName<'_> {
    fn as_ref(&self) -> &str {
        let is_in_budget = take_text_steps(self.0) && take_bytes(|_| NAME_BYTES + self.0.len() as u64);
        if is_in_budget { self.0 } else { "" }
    }
}

impl<'a> From<MeteredName<'a>> for Cow<'a, str> {
    fn from(name: MeteredName<'a>) -> Self {
        Cow::Borrowed(name.0)
    }
}

/// An array of the instance.
pub(super) struct MeteredArray<'a>(&'a [Value]);

impl<'a> Array<'a, Metered> for MeteredArray<'a> {
    type Node = MeteredValue<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Elements<'a> {
        Elements(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        take_steps(|_| self.0.iter().map(comparison_steps).sum()) && all_distinct(self.0)
    }
}

/// The elements of an array. The iterator ends when the budget is used up.
pub(super) struct Elements<'a>(slice::Iter<'a, Value>);

impl<'a> Iterator for Elements<'a> {
    type Item = MeteredValue<'a>;

    fn next(&mut self) -> Option<MeteredValue<'a>> {
        let value = self.0.next().filter(|_| take_steps(|budget| budget.element_steps))?;
        Some(MeteredValue(value))
    }
}
