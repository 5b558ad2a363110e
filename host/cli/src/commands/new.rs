//! `toolwit new`: writes a new plugin project.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::page::{FAINT, Page};
use crate::output::printer::{Format, Printer};
use crate::shell::SuggestedCommand;
use toolwit::build::{Language, NewProject, ProjectError};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit new weather --lang python
  toolwit new plugins/weather --lang rust && toolwit test plugins/weather";

/// Create a plugin project that builds at once
///
/// Writes the WIT of five example tools (text, numbers, records and variants, an error, an entity), their
/// implementation in the language, and test cases. Nothing is installed. If a program of the language's toolchain is
/// missing, prints the command that installs it. The toolchain of Rust is not checked.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct New {
    /// Directory to create; the last component of the path is the name of the plugin
    #[arg(value_name = "NAME")]
    dir: PathBuf,
    /// Language: rust, python, js, ts, c, cpp, zig or go
    #[arg(long = "lang", value_name = "LANGUAGE")]
    language: Language,
}

impl New {
    pub(crate) fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let project = NewProject::new(&self.dir, self.language).map_err(from_project_error)?;
        let files = project.write().map_err(from_project_error)?;
        let missing_tool = self.language.missing_tool(&self.dir);
        if printer.format() == Format::Json {
            let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
            let missing = missing_tool.map(|tool| json!({"program": tool.program, "install": tool.install}));
            printer.document(&json!({"ok": true, "name": project.name(), "files": files, "missing": missing}))?;
            return Ok(Exit::Success);
        }
        let mut page = Page::new();
        for file in &files {
            page.styled(FAINT, "+ ").text(file.display()).end();
        }
        printer.print_page(&page)?;
        if let Some(missing_tool) = missing_tool {
            printer.warn(format_args!(
                "`{}`, which builds {}, is not installed",
                missing_tool.program, self.language
            ));
            printer.hint(format_args!("in `{}`: `{}`", self.dir.display(), missing_tool.install));
        }
        printer.hint(format_args!(
            "`{}` builds it and runs its tests",
            test_command(&self.dir)
        ));
        Ok(Exit::Success)
    }
}

fn test_command(dir: &Path) -> SuggestedCommand {
    SuggestedCommand::new("test").operand(&dir.to_string_lossy())
}

fn from_project_error(error: ProjectError) -> Error {
    let suggestion = match &error {
        ProjectError::Name { .. } => Some("choose a name such as `weather` or `exchange-rates`"),
        ProjectError::Exists(_) => Some("name a directory that does not exist"),
        _ => None,
    };
    let converted = Error::new(ErrorKind::Configuration, Phase::Build, error.to_string());
    match suggestion {
        Some(suggestion) => converted.with_suggestion(suggestion),
        None => converted,
    }
}
