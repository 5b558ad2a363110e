//! A picture that a model can see.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::picture_format::PictureFormat;
use crate::Artifact;
use crate::limits::PICTURE_BYTES_MAX;

/// A picture that a model can see: PNG, JPEG, GIF or WebP, of at most [`PICTURE_BYTES_MAX`] bytes. Clones share its data.
///
/// In JSON, a picture is an object with its media type and its data in base64.
///
/// ```
/// use toolwit_core::Picture;
///
/// let picture = Picture::from_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;")?;
/// assert_eq!(picture.to_string(), "image/gif, 14 bytes");
/// assert!(Picture::from_bytes(b"<svg/>").is_err());
/// # Ok::<(), toolwit_core::InvalidPicture>(())
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PictureRecord", into = "PictureRecord")]
pub struct Picture {
    format: PictureFormat,
    /// The size in bytes.
    bytes: usize,
    /// The data in base64, the form in which every provider receives it.
    base64: Arc<str>,
}

/// The reason why data is not a picture that models can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPicture {
    /// The data is not a PNG, JPEG, GIF or WebP file.
    #[error("it is not a PNG, JPEG, GIF or WebP file")]
    Format,
    /// The data is not base64.
    #[error("its data is not base64")]
    Encoding,
    /// The picture is too large.
    #[error("it has more than {PICTURE_BYTES_MAX} bytes")]
    Size,
}

/// The JSON of a picture.
#[derive(Serialize, Deserialize)]
struct PictureRecord {
    #[serde(rename = "type")]
    media_type: String,
    data: String,
}

impl Picture {
    /// Creates a picture from the bytes of a file. The bytes determine the format.
    ///
    /// # Errors
    /// [`InvalidPicture`] if the file is too large or has another format.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidPicture> {
        Ok(Self {
            format: checked_format(bytes)?,
            bytes: bytes.len(),
            base64: STANDARD.encode(bytes).into(),
        })
    }

    /// Creates a picture from base64, possibly with line breaks.
    ///
    /// # Errors
    /// [`InvalidPicture`] if the text is not base64, or the picture is too large or has another format.
    pub fn from_base64(text: &str) -> Result<Self, InvalidPicture> {
        // The length is checked first, so that a large text is not decoded.
        if text.len() / 4 * 3 > PICTURE_BYTES_MAX.saturating_mul(2) {
            return Err(InvalidPicture::Size);
        }
        let text: String = text.split_ascii_whitespace().collect();
        let bytes = STANDARD.decode(&text).map_err(|_| InvalidPicture::Encoding)?;
        Ok(Self {
            format: checked_format(&bytes)?,
            bytes: bytes.len(),
            base64: text.into(),
        })
    }

    /// Returns the picture in an artifact. Returns `None` for an artifact that is not an image.
    ///
    /// An artifact is an image if its type begins with `image`, or if it is a `resource` with such a `mime_type`. The value, or
    /// its field `data` or `blob`, is the image in base64.
    ///
    /// # Errors
    /// [`InvalidPicture`] for an image that models cannot see.
    #[must_use]
    pub fn of_artifact(artifact: &Artifact) -> Option<Result<Self, InvalidPicture>> {
        let value = &artifact.value;
        let media_type = match artifact.kind.as_str() {
            "resource" => ["mime_type", "mimeType", "mime-type"]
                .iter()
                .find_map(|name| value[*name].as_str())?,
            kind => kind,
        };
        if media_type != "image" && !media_type.starts_with("image/") {
            return None;
        }
        let data = [&value["data"], &value["blob"], value]
            .into_iter()
            .find_map(|data| data.as_str())?;
        Some(Self::from_base64(data))
    }

    /// Returns the format.
    #[must_use]
    pub fn format(&self) -> PictureFormat {
        self.format
    }

    /// Returns the media type, such as `image/png`.
    #[must_use]
    pub fn media_type(&self) -> &'static str {
        self.format.media_type()
    }

    /// Returns the size of the picture, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the data in base64.
    #[must_use]
    pub fn base64(&self) -> &str {
        &self.base64
    }

    /// Returns the picture as a URL of the scheme `data`.
    #[must_use]
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type(), self.base64)
    }
}

fn checked_format(bytes: &[u8]) -> Result<PictureFormat, InvalidPicture> {
    if bytes.len() > PICTURE_BYTES_MAX {
        return Err(InvalidPicture::Size);
    }
    PictureFormat::of_bytes(bytes).ok_or(InvalidPicture::Format)
}

impl TryFrom<PictureRecord> for Picture {
    type Error = InvalidPicture;

    fn try_from(record: PictureRecord) -> Result<Self, InvalidPicture> {
        Self::from_base64(&record.data)
    }
}

impl From<Picture> for PictureRecord {
    fn from(picture: Picture) -> Self {
        Self {
            media_type: picture.media_type().to_owned(),
            data: picture.base64.to_string(),
        }
    }
}

/// Shows the media type and the size.
impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} bytes", self.format, self.bytes)
    }
}

/// Shows the media type and the size, so that no log contains the data.
impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Picture({self})")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    const PNG: &str = "iVBORw0KGgo=";

    fn of_artifact(kind: &str, value: serde_json::Value) -> Option<Result<&'static str, InvalidPicture>> {
        let picture = Picture::of_artifact(&Artifact::new(kind, value))?;
        Some(picture.map(|picture| picture.media_type()))
    }

    #[test]
    fn images_of_artifacts_are_pictures_of_the_format_that_their_bytes_have() {
        for (kind, value) in [
            ("image/png", json!(PNG)),
            ("image", json!({"data": PNG})),
            ("image/jpeg", json!({"data": "iVBORw0K\nGgo="})),
            ("resource", json!({"mime_type": "image/png", "blob": PNG})),
        ] {
            assert_eq!(of_artifact(kind, value), Some(Ok("image/png")), "{kind}");
        }
        assert_eq!(of_artifact("audio/wav", json!(PNG)), None);
        assert_eq!(of_artifact("order", json!({"data": PNG})), None);
        assert_eq!(
            of_artifact("resource", json!({"mime_type": "text/plain", "text": "x"})),
            None
        );
    }

    #[test]
    fn other_formats_invalid_base64_and_large_files_are_refused() {
        let svg = STANDARD.encode("<svg/>");
        assert_eq!(
            of_artifact("image/svg+xml", json!(svg)),
            Some(Err(InvalidPicture::Format))
        );
        assert_eq!(
            of_artifact("image/png", json!("?")),
            Some(Err(InvalidPicture::Encoding))
        );
        let mut large = b"GIF89a".to_vec();
        large.resize(PICTURE_BYTES_MAX, 0);
        assert!(Picture::from_bytes(&large).is_ok());
        large.push(0);
        assert_eq!(Picture::from_bytes(&large), Err(InvalidPicture::Size));
        assert_eq!(Picture::from_base64(&"A".repeat(64 << 20)), Err(InvalidPicture::Size));
    }

    #[test]
    fn a_picture_is_unchanged_after_a_json_round_trip_and_its_data_is_not_in_logs() {
        let picture = Picture::from_base64(PNG).unwrap();
        let json = serde_json::to_value(&picture).unwrap();
        assert_eq!(json, json!({"type": "image/png", "data": PNG}));
        assert_eq!(serde_json::from_value::<Picture>(json).unwrap(), picture);
        assert!(serde_json::from_value::<Picture>(json!({"type": "image/png", "data": "AAAA"})).is_err());
        assert_eq!(format!("{picture:?}"), "Picture(image/png, 8 bytes)");
        assert_eq!(picture.data_url(), format!("data:image/png;base64,{PNG}"));
    }
}
