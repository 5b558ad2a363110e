//! The schemas of tools in the subsets of JSON Schema that providers accept.
//!
//! Every conversion depends on the definition only, so that the same tools give the same bytes in every request. A converted
//! schema accepts at least the arguments that the tool accepts, except for properties that the tool's schema does not list.
//! The loop checks arguments against the tool's own schema.

mod added_nulls;
mod closed;
mod strict;
mod subset;

pub(super) use added_nulls::without_added_nulls;
pub(super) use closed::closed_schema;
pub(super) use strict::strict_schema;
pub(super) use subset::SchemaSubset;
