//! The `toolwit` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolwit::cli::main()
}
