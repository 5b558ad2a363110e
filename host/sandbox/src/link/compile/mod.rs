//! From a component's bytes to a linked component: the engines, the compiler and the cache of compiled code.

pub(crate) mod cache;
pub(crate) mod cache_entries;
pub(crate) mod cache_location;
#[cfg(test)]
mod cache_tests;
mod compile_job;
mod compile_permits;
pub(crate) mod compiler;
pub(crate) mod compiler_child;
mod compiler_process;
pub(crate) mod engine;
pub(crate) mod host_setting;
pub(crate) mod link_once;
pub(crate) mod linked_component;
pub(crate) mod load_or_compile;
mod precompiled;
pub(crate) mod status;
