//! `toolwit completions`: prints a completion script for a shell.

use clap_complete::Shell;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  toolwit completions bash > ~/.local/share/bash-completion/completions/toolwit
  toolwit completions zsh > ~/.zfunc/_toolwit
  toolwit completions fish > ~/.config/fish/completions/toolwit.fish";

/// Print a completion script for a shell
///
/// After the script is installed, a new shell completes the commands and options of `toolwit`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// Shell that executes the script
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, printer: Printer, mut definition: clap::Command) -> Result<Exit, Failure> {
        let name = definition.get_name().to_owned();
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut definition, name, &mut script);
        printer.raw_text(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Success)
    }
}
