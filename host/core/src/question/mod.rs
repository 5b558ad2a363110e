//! Questions of tools to the person who uses the host: the form, the person or service that answers, and the answer.

mod choice;
mod field_schema;
mod form;
mod form_field;
mod form_text;
mod respondent;
mod secret_words;

pub use choice::FieldOption;
pub use form::Form;
pub use form_field::{FieldFormat, FieldKind, FormField};
pub use respondent::{Answer, Question, Respondent, Unanswered};

#[cfg(test)]
mod tests;
