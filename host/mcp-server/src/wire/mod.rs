//! Conversions between Toolwit's types and the types of the protocol: definitions, results, errors, pages and call
//! contexts.

mod annotations;
mod artifact;
mod context;
mod error;
mod page;
mod result;
mod revision;
mod tool;

pub(crate) use annotations::annotations;
pub(crate) use context::{TraceMeta, call_context};
pub(crate) use error::{call_error, internal_error, invalid_params};
pub(crate) use page::{page_items, tool_page};
pub(crate) use result::{Notes, Repetition, call_result};
pub(crate) use revision::Revision;
pub(crate) use tool::{HANDLE_PROPERTY, ResultShape, result_shape, tool};
