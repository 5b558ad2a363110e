//! Dynamic tools: tools that a component lists at run time, with schemas that are not part of its types.
//!
//! A component is queried once ([`Plugin::discover_tools`](crate::Plugin::discover_tools)), under the limits of a call
//! and a shorter deadline. The listed tools are untrusted input, so they are validated. They are then stored in the
//! inspection, so that listing the tools of a plugin later runs no guest code.

mod discover;
mod validate;

#[cfg(test)]
mod tests;
