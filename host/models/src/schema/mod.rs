//! The schemas of tools in the subsets of JSON Schema that providers accept.
//!
//! Every conversion depends on the definition only, so that the same tools give the same bytes in every request.
//!
//! A conversion drops keywords, so that a converted schema usually accepts more values than the tool's own schema. It can refuse
//! properties that the tool's schema does not list, and strict mode requires `null` in place of an omitted property. The agent
//! checks the arguments of a call against the tool's own schema.

mod added_nulls;
mod closed;
mod strict;
mod subset;

pub(super) use added_nulls::without_added_nulls;
pub(super) use closed::closed_schema;
pub(super) use strict::strict_schema;
pub(super) use subset::SchemaSubset;
