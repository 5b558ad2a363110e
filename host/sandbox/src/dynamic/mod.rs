//! Dynamic tools: tools that a component lists at run time, with schemas that are not part of its types.
//!
//! A component is queried once ([`Plugin::discover_tools`](crate::Plugin::discover_tools)), under the limits of a call
//! and a shorter deadline. The listed tools are untrusted input, so they are validated. Then they are added to the
//! component's [`Inspection`](crate::Inspection): the metadata of the component, which can be read without running guest
//! code. So listing the tools of a plugin later runs no guest code.

mod discover;
mod validate;

#[cfg(test)]
mod tests;
