//! The HTTP response of an endpoint. Its body is read in pieces.

use reqwest::Response;
use reqwest::header::CONTENT_TYPE;

use super::endpoint::Deadline;
use super::failure::AttemptFailure;

/// An HTTP response. Its body is limited in time and in bytes while it is read.
pub(crate) struct HttpResponse {
    response: Response,
    deadline: Deadline,
    /// The number of bytes of the body that may still arrive.
    bytes_left: usize,
    /// The maximum size of the body.
    bytes_max: usize,
}

impl HttpResponse {
    pub(super) fn new(response: Response, deadline: Deadline, bytes_max: usize) -> Self {
        Self {
            response,
            deadline,
            bytes_left: bytes_max,
            bytes_max,
        }
    }

    /// Returns the content type, or an empty text if the header is missing.
    pub(crate) fn content_type(&self) -> String {
        let value = self.response.headers().get(CONTENT_TYPE);
        value.map_or_else(String::new, |value| {
            String::from_utf8_lossy(value.as_bytes()).into_owned()
        })
    }

    /// Reads the next piece of the body. Returns `None` at its end.
    ///
    /// # Errors
    /// A transport error, a piece that does not arrive in time, or a body that exceeds its maximum size.
    pub(crate) async fn next_piece(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, AttemptFailure> {
        let Some(piece) = self.deadline.wait_for(self.response.chunk()).await? else {
            return Ok(None);
        };
        match self.bytes_left.checked_sub(piece.len()) {
            Some(bytes_left) => self.bytes_left = bytes_left,
            None => {
                return Err(AttemptFailure::malformed(format!(
                    "it has more than {} bytes",
                    self.bytes_max
                )));
            }
        }
        Ok(Some(piece))
    }

    /// Reads the body up to its end, its maximum size or a failure, whichever comes first.
    pub(super) async fn read_beginning(mut self) -> Vec<u8> {
        let mut body = Vec::new();
        while let Ok(Some(piece)) = self.deadline.wait_for(self.response.chunk()).await {
            let accepted_bytes = piece.len().min(self.bytes_max - body.len());
            body.extend_from_slice(&piece[..accepted_bytes]);
            if accepted_bytes < piece.len() {
                break;
            }
        }
        body
    }
}
