//! Bytes to definitions: what a component offers and imports, read without running anything.

pub(crate) mod annotations;
pub(crate) mod check;
pub(crate) mod declared;
pub(crate) mod docs;
pub(crate) mod dynamic_export;
pub(crate) mod dynamic_tools;
pub(crate) mod footprint;
pub(crate) mod imports;
pub(crate) mod inspection;
pub(crate) mod interfaces;
pub(crate) mod kept;
pub(crate) mod known;
pub(crate) mod package_docs;
pub(crate) mod profile;
pub(crate) mod reflect;
pub(crate) mod rehearsal;
pub(crate) mod source;
pub(crate) mod survey;
pub(crate) mod type_reader;
pub(crate) mod wit_text;
