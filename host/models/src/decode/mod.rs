//! Converts response bodies to JSON values: streams of server-sent events, and JSON documents.
//!
//! The decoders accept pieces of any size. A piece can end anywhere, even within a character. Each event of a stream and each
//! JSON body is limited in bytes.

mod body_decoder;
mod event_decoder;
mod fields;
mod surrogates;

pub(super) use body_decoder::{BodyDecoder, BodyPart};
pub(super) use fields::Fields;
pub(super) use surrogates::without_lone_surrogates;
