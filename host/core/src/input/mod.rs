//! Arguments of a call: parsing, repair and validation.

mod arguments;
mod input_validator;
mod parameter;

pub use arguments::{ARGUMENT_BYTES_MAX, ParsedArguments, parse_arguments};
pub use input_validator::InputValidator;
pub use parameter::Parameter;
