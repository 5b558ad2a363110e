//! From bytes to JSON: the decoder of server-sent events and of complete bodies.
//!
//! The decoders accept pieces of any size and at any boundary. Each event of a stream, and each body of JSON, is limited in
//! bytes.

mod body_decoder;
mod event_decoder;
mod fields;

pub(super) use body_decoder::{BodyDecoder, BodyPart};
pub(super) use fields::Fields;
