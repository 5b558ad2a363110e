//! Arguments of a call: parsing, repair and validation.

mod arguments;
mod checkable_schema;
mod encoded_values;
mod input_validator;
mod metered_value;
mod parameter;
mod pattern_budget;
mod schema_dialect;
mod schema_keywords;
mod schema_reference;
mod schema_repair;
mod unique_items;
mod untrusted_schema;

pub use arguments::{ParsedArguments, parse_arguments};
pub use encoded_values::decode_encoded_values;
pub use input_validator::InputValidator;
pub use parameter::Parameter;
pub use untrusted_schema::UntrustedSchemas;
