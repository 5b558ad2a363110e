//! Pictures that the user attaches to a message.

use std::io;
use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use crate::output::printer::Printer;
use toolwit::limits::{PICTURE_BYTES_MAX, PICTURES_PER_MESSAGE_MAX};
use toolwit::model::ChatModel;
use toolwit::tool::Picture;
use toolwit::tool::file::read_file;
use toolwit::{Error, ErrorKind, Phase};

/// Reads pictures for one message. Warns if the model takes no pictures.
///
/// # Errors
/// If there are too many files, or one of them cannot be read or is not a picture.
pub(crate) async fn read_pictures(
    files: Vec<PathBuf>,
    model: &dyn ChatModel,
    printer: Printer,
    cancel: &CancellationToken,
) -> Result<Vec<Picture>, Error> {
    if files.len() > PICTURES_PER_MESSAGE_MAX {
        return Err(too_many_pictures());
    }
    let mut pictures = Vec::new();
    for file in files {
        pictures.push(read_picture(file, cancel).await?);
    }
    if !pictures.is_empty() {
        warn_if_not_accepted(model, printer);
    }
    Ok(pictures)
}

/// Warns if the model takes no pictures.
pub(crate) fn warn_if_not_accepted(model: &dyn ChatModel, printer: Printer) {
    if model.accepts_pictures() {
        return;
    }
    printer.warn(format!(
        "the model `{}` is not known to take pictures, and does not receive them",
        model.name()
    ));
    printer.hint("pass `--pictures yes` if the model takes them");
}

/// Reads a picture from a file.
///
/// # Errors
/// If the file cannot be read, is too large, or is not a PNG, JPEG, GIF or WebP file.
pub(crate) async fn read_picture(file: PathBuf, cancel: &CancellationToken) -> Result<Picture, Error> {
    let name = file.display().to_string();
    let task = tokio::task::spawn_blocking(move || read_file(&file, PICTURE_BYTES_MAX as u64));
    let bytes = tokio::select! {
        biased;
        bytes = task => bytes.map_err(io::Error::other).flatten(),
        () = cancel.cancelled() => {
            let message = format!("interrupted while reading `{name}`");
            return Err(Error::new(ErrorKind::Cancelled, Phase::Registry, message));
        }
    };
    let bytes = bytes.map_err(|error| {
        let message = format!("the picture `{name}` could not be read: {error}");
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_source(error)
    })?;
    Picture::from_bytes(&bytes).map_err(|reason| {
        let message = format!("`{name}` cannot be attached: {reason}");
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_source(reason)
    })
}

/// Returns the error for too many pictures of one message.
pub(crate) fn too_many_pictures() -> Error {
    let message = format!("a message has at most {PICTURES_PER_MESSAGE_MAX} pictures");
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
}
