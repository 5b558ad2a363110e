//! The content of a message in the chat-completions API.

use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use toolwit_core::Picture;

/// The content of a message: texts and pictures. It is serialized as a text if it has no pictures, and else as a list of parts.
/// It is deserialized from a text, `null` or a list of parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WireContent(Vec<ContentPart>);

#[derive(Clone, Debug, PartialEq)]
enum ContentPart {
    Text(String),
    Picture(Picture),
}

impl WireContent {
    /// Creates a content from a text. An empty text is not a part.
    pub(super) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() {
            return Self::default();
        }
        Self(vec![ContentPart::Text(text)])
    }

    /// Adds pictures after the other parts.
    pub(super) fn with_pictures(mut self, pictures: &[Picture]) -> Self {
        self.0.extend(pictures.iter().cloned().map(ContentPart::Picture));
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the parts of another content after those of this one.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Adds the parts of another content before those of this one.
    pub(super) fn prepend(&mut self, other: Self) {
        self.0.splice(..0, other.0);
    }

    /// Returns the pictures.
    pub(super) fn pictures(&self) -> Vec<Picture> {
        let pictures = self.0.iter().filter_map(|part| match part {
            ContentPart::Picture(picture) => Some(picture.clone()),
            ContentPart::Text(_) => None,
        });
        pictures.collect()
    }

    /// Returns the texts as one text.
    pub(super) fn into_text(self) -> String {
        let texts = self.0.into_iter().filter_map(|part| match part {
            ContentPart::Text(text) => Some(text),
            ContentPart::Picture(_) => None,
        });
        texts.collect()
    }
}

impl Serialize for WireContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let has_pictures = self.0.iter().any(|part| matches!(part, ContentPart::Picture(_)));
        if !has_pictures {
            return serializer.serialize_str(&self.clone().into_text());
        }
        let mut parts = serializer.serialize_seq(Some(self.0.len()))?;
        for part in &self.0 {
            parts.serialize_element(&match part {
                ContentPart::Text(text) => json!({"type": "text", "text": text}),
                ContentPart::Picture(picture) => {
                    json!({"type": "image_url", "image_url": {"url": picture.data_url()}})
                }
            })?;
        }
        parts.end()
    }
}

impl<'de> Deserialize<'de> for WireContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Content {
            Text(String),
            Parts(Vec<Part>),
        }

        #[derive(Deserialize)]
        struct Part {
            text: Option<String>,
            image_url: Option<ImageUrl>,
        }

        #[derive(Deserialize)]
        #[serde(untagged)]
        enum ImageUrl {
            Object { url: String },
            Text(String),
        }

        let parts = match Option::<Content>::deserialize(deserializer)? {
            None => return Ok(Self::default()),
            Some(Content::Text(text)) => return Ok(Self::text(text)),
            Some(Content::Parts(parts)) => parts,
        };
        let converted = parts.into_iter().filter_map(|part| match (part.text, part.image_url) {
            (Some(text), _) => Some(ContentPart::Text(text)),
            (None, Some(ImageUrl::Object { url } | ImageUrl::Text(url))) => {
                let (_, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
                Picture::from_base64(data).ok().map(ContentPart::Picture)
            }
            (None, None) => None,
        });
        Ok(Self(converted.collect()))
    }
}
