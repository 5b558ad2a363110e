//! Arguments of a call: parsing, repair and validation.

mod arguments;
mod encoded_values;
mod input_validator;
mod metered_value;
mod parameter;
mod unique_items;
mod untrusted_schema;

pub use arguments::{ParsedArguments, parse_arguments};
pub use encoded_values::decode_encoded_values;
pub use input_validator::InputValidator;
pub use parameter::Parameter;
pub use untrusted_schema::UntrustedSchemas;
