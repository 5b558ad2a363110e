//! `toolwit vectors`: the word vectors with which the search finds tools by meaning.

use std::path::PathBuf;

use clap::Subcommand;
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::vectors::vector_directory;
use crate::output::page::Page;
use crate::output::printer::{Format, Printer};
use toolwit::registry::{VectorDirectory, VectorFiles, WordVectors};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  pip install --no-deps --target wordllama wordllama
  toolwit vectors add wordllama
  toolwit vectors show";

/// Manage the word vectors with which the search finds tools by meaning
///
/// With word vectors, `toolwit search` and the search of `toolwit run` also find tools that share no word with the
/// query. They are two files: the vectors (.safetensors) and their tokenizer (.json), such as those of the Python
/// package wordllama (MIT, 16 MB). Nothing is downloaded.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Vectors {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check both files and copy them into the user's data directory
    Add {
        /// The two files, or a directory that contains them
        #[arg(value_name = "FILE|DIR", required = true, num_args = 1..=2)]
        paths: Vec<PathBuf>,
    },
    /// Show the number of vectors and their directory
    Show,
    /// Remove the word vectors, so that the search compares words only
    Remove,
}

impl Vectors {
    pub(crate) fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let directory = vector_directory().ok_or_else(|| {
            let message = "the data directory is unknown, because there is no home directory";
            Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion("set HOME")
        })?;
        match self.action {
            Action::Add { paths } => {
                let vectors = directory.add(&VectorFiles::find(&paths)?)?;
                print_vectors(printer, &directory, Some(&vectors))?;
            }
            Action::Show => print_vectors(printer, &directory, directory.open()?.as_ref())?,
            Action::Remove => print_removed(printer, &directory, directory.remove()?)?,
        }
        Ok(Exit::Success)
    }
}

fn print_vectors(printer: Printer, directory: &VectorDirectory, vectors: Option<&WordVectors>) -> Result<(), Failure> {
    let path = directory.path().display();
    match (printer.format(), vectors) {
        (Format::Json, _) => printer.document(&json!({
            "directory": path.to_string(),
            "vectors": vectors.map(WordVectors::count),
            "components": vectors.map(WordVectors::width),
        })),
        (Format::Human, Some(vectors)) => {
            let (count, width) = (vectors.count(), vectors.width());
            let mut page = Page::new();
            page.text(format_args!("{count} word vectors with {width} components, in {path}"));
            printer.print_page(page.end())
        }
        (Format::Human, None) => {
            printer.hint("there are no word vectors; `toolwit vectors add DIR` adds the word vectors of a directory");
            Ok(())
        }
    }
}

fn print_removed(printer: Printer, directory: &VectorDirectory, is_removed: bool) -> Result<(), Failure> {
    let path = directory.path().display();
    if printer.format() == Format::Json {
        return printer.document(&json!({"directory": path.to_string(), "removed": is_removed}));
    }
    let mut page = Page::new();
    if is_removed {
        page.text(format_args!("removed the word vectors in {path}"));
    } else {
        page.text("there are no word vectors");
    }
    printer.message(page.end());
    Ok(())
}
