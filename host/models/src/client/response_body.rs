//! Reads the body of a response.

use serde_json::Value;

use super::dialect::{ReaderState, ResponseReader};
use crate::assembly::ResponseAssembly;
use crate::decode::{BodyDecoder, BodyPart, Fields};
use crate::http::{AttemptFailure, ProviderError};

/// Reads the body of a response, which arrives in pieces of any size, into a [`ResponseAssembly`].
pub(super) struct BodyReader<R> {
    decoder: BodyDecoder,
    reader: R,
    /// The number of events that have been read. If there is one, the body is a stream.
    event_count: usize,
}

impl<R: ResponseReader> BodyReader<R> {
    pub(super) fn new(reader: R, bytes_max: usize) -> Self {
        Self {
            decoder: BodyDecoder::new(bytes_max),
            reader,
            event_count: 0,
        }
    }

    /// Reads a piece of the body.
    ///
    /// # Errors
    /// The piece is not valid, makes the response exceed a limit, or contains an error that the provider reports.
    pub(super) fn push(
        &mut self,
        piece: &[u8],
        response: &mut ResponseAssembly<'_>,
    ) -> Result<ReaderState, AttemptFailure> {
        let parts = self.decoder.push(piece)?;
        self.read_parts(parts, response)
    }

    /// Reads the end of the body.
    ///
    /// # Errors
    /// The body is not a response, exceeds a limit, ended before the response was complete, or contains an error that the
    /// provider reports.
    pub(super) fn finish(
        &mut self,
        content_type: &str,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<(), AttemptFailure> {
        let parts = self.decoder.finish(content_type)?;
        if self.read_parts(parts, response)? == ReaderState::Done {
            return Ok(());
        }
        if self.event_count == 0 && self.decoder.is_blank() {
            return Err(AttemptFailure::empty());
        }
        if self.event_count == 0 {
            return Err(self
                .decoder
                .not_a_response(content_type, "it has neither a JSON document nor an event"));
        }
        if !self.is_complete(response) {
            return Err(AttemptFailure::interrupted());
        }
        self.finish_response(response)
    }

    /// Ends a response that [`is_complete`](Self::is_complete) although its body has no end mark.
    pub(super) fn finish_response(&mut self, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        self.reader.finish(response)
    }

    /// Returns whether the response would be complete if the body ended here.
    pub(super) fn is_complete(&self, response: &ResponseAssembly<'_>) -> bool {
        self.event_count > 0 && response.has_stop_reason()
    }

    /// Returns the number of events that have been read.
    pub(super) fn event_count(&self) -> usize {
        self.event_count
    }

    /// Reads the parts of a body in order, up to the part that completes the response.
    fn read_parts(
        &mut self,
        parts: Vec<BodyPart>,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<ReaderState, AttemptFailure> {
        for part in parts {
            let reader_state = match part {
                BodyPart::Document(document) => {
                    check_error(&document)?;
                    self.reader.read_document(&document, response)?;
                    ReaderState::Done
                }
                BodyPart::Event(event) => {
                    self.event_count += 1;
                    check_error(&event)?;
                    self.reader.read_event(&event, response)?
                }
                // An end mark before the first event is not the end of a response.
                BodyPart::End if self.event_count > 0 => ReaderState::Done,
                BodyPart::End => ReaderState::Open,
            };
            if reader_state == ReaderState::Done {
                self.reader.finish(response)?;
                return Ok(reader_state);
            }
        }
        Ok(ReaderState::Open)
    }
}

/// Fails if the value contains an error: some providers send an error with HTTP status 200, instead of a response or within a
/// stream.
fn check_error(value: &Value) -> Result<(), AttemptFailure> {
    let error = value.non_null("error").filter(|error| match error {
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(is_error) => *is_error,
        _ => false,
    });
    if error.is_some() || value.text("object") == "error" {
        return Err(ProviderError::from_envelope(value).into_failure(200, None));
    }
    Ok(())
}
