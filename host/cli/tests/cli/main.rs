//! The `toolwit` command as people and programs meet it: the real binary, real components, what is printed and how it ends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod build;
mod call;
mod demo;
mod dynamic;
mod grant;
mod guests;
mod inspect;
mod interrupt;
mod json;
mod list;
mod operator;
mod run;
mod script;
mod show;
mod support;
mod terminal;
