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

/// The name of the vectors file in a [`VectorDirectory`].
const VECTORS_NAME: &str = "vectors.safetensors";

/// The name of the tokenizer file in a [`VectorDirectory`].
const TOKENIZER_NAME: &str = "tokenizer.json";

/// Maximum depth of subdirectories in which the files are searched.
const DEPTH_MAX: usize = 4;

/// Maximum number of files in the searched directories.
const FILES_MAX: usize = 10_000;

/// Maximum length of the reason in an error message, in characters. A reason can quote text of the file.
const REASON_CHARS_MAX: usize = 240;

/// The suggestion in errors about missing or unusable files.
const SUGGESTION: &str = "use the two files of the Python package wordllama, or its unpacked directory: \
                          `pip install --no-deps --target DIR wordllama`";

/// The two files of word vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorFiles {
    /// The vectors, in the safetensors format.
    pub vectors: PathBuf,
    /// The tokenizer, in the JSON format of Hugging Face. Its vocabulary assigns a vector to each word or piece of a word.
    pub tokenizer: PathBuf,
}

impl VectorFiles {
    /// Finds the two files. Each path is a file or a directory; directories are searched.
    ///
    /// The name of the vectors file must end in `.safetensors`, and the name of the tokenizer file in `.json`. If the tokenizer
    /// file is found in a directory, its name must also contain `tokenizer`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if a file is missing or not unique, or if a path is an archive; [`ErrorKind::Io`] if a
    /// directory cannot be read or has too many files.
    pub fn find(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut candidates = Vec::new();
        for path in paths {
            if path.is_dir() {
                collect_files(path, 0, &mut candidates).map_err(|error| read_error(path, error))?;
                candidates.sort();
            } else if has_extension(path, "whl") || has_extension(path, "zip") {
                let error = unusable_error(path, "it is an archive");
                return Err(error.override_suggestion("unpack it, and pass its directory"));
            } else {
                candidates.push(path.clone());
            }
        }
        let is_named_directly = |path: &PathBuf| paths.contains(path);
        let is_tokenizer = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            has_extension(path, "json") && (is_named_directly(path) || name.contains("tokenizer"))
        };
        Ok(Self {
            vectors: only_match(&candidates, "`.safetensors` file", |path| {
                has_extension(path, "safetensors")
            })?,
            tokenizer: only_match(&candidates, "`tokenizer….json` file", is_tokenizer)?,
        })
    }

    /// Reads and validates the files.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if a file cannot be read, [`ErrorKind::Configuration`] if a file is not a regular file, is too
    /// large, or is invalid. Both errors name the file.
    pub fn read(&self) -> Result<WordVectors, Error> {
        let (vectors, _) = self.read_with_tokenizer()?;
        Ok(vectors)
    }

    /// Reads and validates the files. Returns the vectors and the content of the tokenizer file.
    fn read_with_tokenizer(&self) -> Result<(WordVectors, Vec<u8>), Error> {
        let bytes = read_limited(&self.vectors, VECTORS_BYTES_MAX)?;
        let matrix = Matrix::parse(bytes).map_err(|reason| unusable_error(&self.vectors, reason))?;
        let json = read_limited(&self.tokenizer, TOKENIZER_BYTES_MAX)?;
        let vocabulary =
            Vocabulary::parse(&json, matrix.row_count()).map_err(|reason| unusable_error(&self.tokenizer, reason))?;
        Ok((WordVectors { matrix, vocabulary }, json))
    }
}

/// A directory that stores the two files of word vectors under fixed names.
#[derive(Clone, Debug)]
pub struct VectorDirectory {
    path: PathBuf,
}

impl VectorDirectory {
    /// Creates a reference to a directory. The directory need not exist.
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

    /// Reads the word vectors. Returns `None` if the directory has neither of the files.
    ///
    /// # Errors
    /// The errors of [`VectorFiles::read`].
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
    /// - The errors of [`VectorFiles::read`]. The directory is then unchanged.
    /// - [`ErrorKind::Io`] if the directory cannot be written.
    pub fn add(&self, files: &VectorFiles) -> Result<WordVectors, Error> {
        let (vectors, tokenizer) = files.read_with_tokenizer()?;
        let targets = self.files();
        // The old tokenizer is deleted first. An interruption then cannot leave the new vectors with the old tokenizer.
        remove_file(&targets.tokenizer)?;
        let contents = [
            (&targets.vectors, vectors.matrix.file_bytes()),
            (&targets.tokenizer, &tokenizer),
        ];
        for (path, bytes) in contents {
            replace_file(path, bytes).map_err(|error| {
                let message = format!("`{}` could not be written: {error}", path.display());
                Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
            })?;
        }
        Ok(vectors)
    }

    /// Deletes the two files. Returns whether at least one of them existed.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if a file cannot be deleted.
    pub fn remove(&self) -> Result<bool, Error> {
        let files = self.files();
        let has_removed_tokenizer = remove_file(&files.tokenizer)?;
        let has_removed_vectors = remove_file(&files.vectors)?;
        Ok(has_removed_tokenizer || has_removed_vectors)
    }
}

/// Collects the files below a directory, up to [`DEPTH_MAX`] levels deep. Links to directories are not followed.
fn collect_files(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if files.len() >= FILES_MAX {
            return Err(io::Error::other(format!("it has more than {FILES_MAX} files")));
        }
        if !entry.file_type()?.is_dir() {
            files.push(entry.path());
        } else if depth < DEPTH_MAX {
            collect_files(&entry.path(), depth + 1, files)?;
        }
    }
    Ok(())
}

/// Returns the only path for which `is_match` returns `true`. `description` names the searched file in errors.
fn only_match(paths: &[PathBuf], description: &str, is_match: impl Fn(&PathBuf) -> bool) -> Result<PathBuf, Error> {
    let mut matches = paths.iter().filter(|path| is_match(path));
    let (message, suggestion) = match (matches.next(), matches.next()) {
        (Some(path), None) => return Ok(path.clone()),
        (Some(first), Some(second)) => {
            let (first, second) = (first.display(), second.display());
            let message = format!("there is more than one {description}: `{first}` and `{second}`");
            (message, "pass the two files")
        }
        (None, _) => (format!("there is no {description}"), SUGGESTION),
    };
    Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(suggestion))
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension()
        .is_some_and(|actual| actual.eq_ignore_ascii_case(extension))
}

/// Reads a regular file of limited size.
fn read_limited(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let metadata = fs::metadata(path).map_err(|error| read_error(path, error))?;
    if !metadata.is_file() {
        return Err(unusable_error(path, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    if metadata.len() <= bytes_max {
        // The file can grow while it is read. The extra byte reveals that it has become too large.
        let read_result = File::open(path).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes));
        read_result.map_err(|error| read_error(path, error))?;
    }
    if metadata.len().max(bytes.len() as u64) > bytes_max {
        return Err(unusable_error(
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

fn read_error(path: &Path, error: io::Error) -> Error {
    let message = format!("`{}` could not be read: {error}", path.display());
    Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
}

fn unusable_error(path: &Path, reason: impl std::fmt::Display) -> Error {
    let reason: String = reason.to_string().chars().take(REASON_CHARS_MAX).collect();
    let message = format!("`{}` cannot be used for word vectors: {reason}", path.display());
    Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(SUGGESTION)
}
