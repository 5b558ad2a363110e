//! The pictures of the user in journals and traces.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use toolwit_core::text::sha256;
use toolwit_core::{Message, Picture, Role};

/// A picture that the user attached. A journal has its data once, in the first event with the picture; a trace never has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedPicture {
    /// The media type.
    #[serde(rename = "type")]
    pub media_type: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The SHA-256 of its data in base64, in hex.
    pub sha256: String,
    /// The picture; `None` in a trace, and if an earlier event of the journal has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<Picture>,
}

/// The pictures that the user attached to a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttachedPictures {
    /// The pictures.
    pub pictures: Vec<RecordedPicture>,
}

impl AttachedPictures {
    /// Records the pictures of a message. Omits the data of those that one of the earlier messages has.
    pub(crate) fn record(pictures: &[Picture], earlier: &[Message]) -> Self {
        Self {
            pictures: RecordedPicture::record_all(pictures, earlier),
        }
    }
}

impl RecordedPicture {
    fn record_all(pictures: &[Picture], earlier: &[Message]) -> Vec<Self> {
        // The data of a picture in a result may have been omitted.
        let is_user = |message: &&Message| matches!(message.role, Role::User { .. });
        let has_earlier = |picture: &Picture| {
            earlier
                .iter()
                .filter(is_user)
                .any(|message| message.pictures.contains(picture))
        };
        let record = |picture: &Picture| Self {
            media_type: picture.media_type().to_owned(),
            bytes: picture.bytes() as u64,
            sha256: sha256(picture.base64()),
            picture: (!has_earlier(picture)).then(|| picture.clone()),
        };
        pictures.iter().map(record).collect()
    }
}

/// The pictures of the user and of results that the events so far contain, by their digest.
#[derive(Debug, Default)]
pub(crate) struct RecordedPictures(HashMap<String, Picture>);

impl RecordedPictures {
    /// Adds a picture.
    pub(crate) fn add(&mut self, picture: &Picture) {
        self.0.insert(sha256(picture.base64()), picture.clone());
    }

    /// Adds the data of recorded pictures, and returns them. A picture whose data was not recorded is omitted.
    pub(crate) fn restore(&mut self, recorded: &[RecordedPicture]) -> Vec<Picture> {
        for record in recorded {
            if let Some(picture) = &record.picture {
                self.0.insert(record.sha256.clone(), picture.clone());
            }
        }
        recorded
            .iter()
            .filter_map(|record| self.0.get(&record.sha256).cloned())
            .collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_data_of_a_picture_is_recorded_once_and_restored_for_each_message() {
        let picture = Picture::from_bytes(b"GIF89a").unwrap();
        let first = RecordedPicture::record_all(std::slice::from_ref(&picture), &[]);
        let earlier = [Message::user("see").with_pictures(vec![picture.clone()])];
        let second = RecordedPicture::record_all(std::slice::from_ref(&picture), &earlier);
        assert!(first[0].picture.is_some() && second[0].picture.is_none());
        let mut pictures = RecordedPictures::default();
        assert_eq!(pictures.restore(&second), [], "the data was not recorded");
        assert_eq!(pictures.restore(&first), std::slice::from_ref(&picture));
        assert_eq!(pictures.restore(&second), [picture]);
    }
}
