//! The `toolwit` command.

fn main() {}
