//! Arguments of a call: parsing, repair and validation.

mod arguments;
mod input_validator;
mod parameter;

pub use arguments::{ParsedArguments, parse_arguments};
pub use input_validator::InputValidator;
pub use parameter::Parameter;
