//! Inspection: reads the tool definitions and imports of a component from its bytes, without compiling or running it.

pub(crate) mod annotations;
pub(crate) mod cache;
pub(crate) mod check;
mod compile_cost;
pub(crate) mod declared;
pub(crate) mod docs;
pub(crate) mod dynamic_export;
pub(crate) mod dynamic_tools;
mod effect_tag;
mod entry_tools;
pub(crate) mod footprint;
pub(crate) mod imports;
pub(crate) mod inspection;
pub(crate) mod instantiation;
pub(crate) mod instantiation_recorder;
pub(crate) mod interceptor_export;
pub(crate) mod interfaces;
pub(crate) mod lazy;
pub(crate) mod lint;
pub(crate) mod package_docs;
pub(crate) mod profile;
pub(crate) mod reflect;
mod refusal;
pub(crate) mod source;
pub(crate) mod type_reader;
pub(crate) mod wit_text;
