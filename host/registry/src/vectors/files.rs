//! The two files of word vectors: finding, reading and storing them.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::WordVectors;
use super::matrix::Matrix;
use super::vocabulary::Vocabulary;
use toolwit_core::file::replace_file;
use toolwit_core::limits::{ByteCount, TOKENIZER_BYTES_MAX, VECTORS_BYTES_MAX};
use toolwit_core::{Error, ErrorKind, Phase};

/// The names of the files in a [`VectorDirectory`].
const VECTORS_NAME: &str = "vectors.safetensors";
const TOKENIZER_NAME: &str = "tokenizer.json";

/// Maximum depth and number of entries of a directory in which the files are searched.
const DEPTH_MAX: usize = 4;
const ENTRIES_MAX: usize = 10_000;

/// Maximum length of a reason in an error, in characters. A reason can quote the file.
const REASON_CHARS_MAX: usize = 240;

/// Advice for files that are missing or not usable.
const SUGGESTION: &str = "use the two files of the Python package wordllama, or its unpacked directory: \
                          `pip install --no-deps --target DIR wordllama`";

/// The two files of word vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorFiles {
    /// The vectors, in the safetensors format.
    pub vectors: PathBuf,
    /// The tokenizer of Hugging Face that numbers them, as JSON.
    pub tokenizer: PathBuf,
}

impl VectorFiles {
    /// Finds the two files: among the paths, and in directories among them, by their names `….safetensors` and
    /// `…tokenizer….json`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if a file is missing or not unique, [`ErrorKind::Io`] if a directory cannot be read.
    pub fn find(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut candidates = Vec::new();
        for path in paths {
            if path.is_dir() {
                collect(path, 0, &mut candidates).map_err(|error| unreadable(path, error))?;
                candidates.sort();
            } else if has_extension(path, "whl") || has_extension(path, "zip") {
                return Err(unusable(path, "it is an archive").override_suggestion("unpack it, and pass its directory"));
            } else {
                candidates.push(path.clone());
            }
        }
        let is_given = |path: &PathBuf| paths.contains(path);
        let is_tokenizer = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            has_extension(path, "json") && (is_given(path) || name.contains("tokenizer"))
        };
        Ok(Self {
            vectors: only(&candidates, "`.safetensors` file", |path| {
                has_extension(path, "safetensors")
            })?,
            tokenizer: only(&candidates, "`tokenizer….json`", is_tokenizer)?,
        })
    }

    /// Reads and validates the files.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if a file cannot be read, [`ErrorKind::Configuration`] if it is too large or invalid. Both name the file.
    pub fn read(&self) -> Result<WordVectors, Error> {
        let (vectors, _) = self.read_with_tokenizer()?;
        Ok(vectors)
    }

    /// Reads and validates the files. Returns the vectors and the content of the tokenizer's file.
    fn read_with_tokenizer(&self) -> Result<(WordVectors, Vec<u8>), Error> {
        let bytes = read(&self.vectors, VECTORS_BYTES_MAX)?;
        let matrix = Matrix::parse(bytes).map_err(|why| unusable(&self.vectors, why))?;
        let json = read(&self.tokenizer, TOKENIZER_BYTES_MAX)?;
        let vocabulary = Vocabulary::parse(&json, matrix.rows()).map_err(|why| unusable(&self.tokenizer, why))?;
        Ok((WordVectors { matrix, vocabulary }, json))
    }
}

/// A directory for the files of word vectors, such as one in the user's data directory.
#[derive(Clone, Debug)]
pub struct VectorDirectory {
    path: PathBuf,
}

impl VectorDirectory {
    /// Names a directory, which need not exist.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn files(&self) -> VectorFiles {
        VectorFiles {
            vectors: self.path.join(VECTORS_NAME),
            tokenizer: self.path.join(TOKENIZER_NAME),
        }
    }

    /// Reads the word vectors. Returns `None` if the directory has none.
    ///
    /// # Errors
    /// Those of [`VectorFiles::read`].
    pub fn open(&self) -> Result<Option<WordVectors>, Error> {
        let files = self.files();
        if files.vectors.exists() || files.tokenizer.exists() {
            files.read().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Validates files and copies them into the directory. Replaces earlier word vectors.
    ///
    /// # Errors
    /// Those of [`VectorFiles::read`], in which case nothing changes, and [`ErrorKind::Io`] if the directory cannot be written.
    pub fn add(&self, files: &VectorFiles) -> Result<WordVectors, Error> {
        let (vectors, tokenizer) = files.read_with_tokenizer()?;
        let own = self.files();
        // Without the earlier tokenizer, an interruption leaves no mixture of two models.
        remove_file(&own.tokenizer)?;
        let parts = [(&own.vectors, vectors.matrix.file()), (&own.tokenizer, &tokenizer)];
        for (path, bytes) in parts {
            replace_file(path, bytes).map_err(|error| {
                let message = format!("`{}` could not be written: {error}", path.display());
                Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
            })?;
        }
        Ok(vectors)
    }

    /// Deletes the word vectors. Returns whether there were any.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if a file cannot be deleted.
    pub fn remove(&self) -> Result<bool, Error> {
        let files = self.files();
        let has_removed = [remove_file(&files.tokenizer)?, remove_file(&files.vectors)?];
        Ok(has_removed.contains(&true))
    }
}

/// Collects the files below a directory. Links to directories are not followed.
fn collect(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if files.len() >= ENTRIES_MAX {
            return Err(io::Error::other(format!("it has more than {ENTRIES_MAX} files")));
        }
        if !entry.file_type()?.is_dir() {
            files.push(entry.path());
        } else if depth < DEPTH_MAX {
            collect(&entry.path(), depth + 1, files)?;
        }
    }
    Ok(())
}

/// Returns the only path that fits.
fn only(paths: &[PathBuf], kind: &str, fits: impl Fn(&PathBuf) -> bool) -> Result<PathBuf, Error> {
    let mut fitting = paths.iter().filter(|path| fits(path));
    let message = match (fitting.next(), fitting.next()) {
        (Some(path), None) => return Ok(path.clone()),
        (Some(one), Some(other)) => format!(
            "there are several files of one kind ({kind}): `{}` and `{}`",
            one.display(),
            other.display()
        ),
        (None, _) => format!("there is no {kind}"),
    };
    let suggestion = if message.starts_with("there is no") {
        SUGGESTION
    } else {
        "pass the two files"
    };
    Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(suggestion))
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension()
        .is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

/// Reads a regular file of limited size.
fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, error))?;
    if !metadata.is_file() {
        return Err(unusable(path, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    if metadata.len() <= bytes_max {
        let file = File::open(path).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes));
        file.map_err(|error| unreadable(path, error))?;
    }
    if metadata.len().max(bytes.len() as u64) > bytes_max {
        return Err(unusable(
            path,
            format_args!("it is larger than {}", ByteCount(bytes_max)),
        ));
    }
    Ok(bytes)
}

/// Deletes a file. Returns whether it existed.
fn remove_file(path: &Path) -> Result<bool, Error> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => {
            let message = format!("`{}` could not be deleted: {error}", path.display());
            Err(Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error))
        }
    }
}

fn unreadable(path: &Path, error: io::Error) -> Error {
    let message = format!("`{}` could not be read: {error}", path.display());
    Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
}

fn unusable(path: &Path, why: impl std::fmt::Display) -> Error {
    let why: String = why.to_string().chars().take(REASON_CHARS_MAX).collect();
    let message = format!("`{}` cannot be used for word vectors: {why}", path.display());
    Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(SUGGESTION)
}
