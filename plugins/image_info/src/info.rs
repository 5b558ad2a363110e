//! The properties of an image.

use imagesize::{ImageError, ImageType, blob_size, image_type};

use crate::exif::{self, CameraData};

/// The properties of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// The format.
    pub format: &'static str,
    /// The width in pixels.
    pub width: usize,
    /// The height in pixels.
    pub height: usize,
    /// The camera data.
    pub camera: Option<CameraData>,
}

/// Reads the properties of an image.
///
/// # Errors
/// If the format is unknown, or the file is damaged.
pub fn read(bytes: &[u8]) -> Result<Info, String> {
    let describe = |error: ImageError| match error {
        ImageError::NotSupported => "it is not an image of a known format".to_owned(),
        error => error.to_string(),
    };
    let kind = image_type(bytes).map_err(describe)?;
    let size = blob_size(bytes).map_err(describe)?;
    Ok(Info {
        format: format_name(kind),
        width: size.width,
        height: size.height,
        camera: exif::find(bytes).and_then(exif::read),
    })
}

fn format_name(kind: ImageType) -> &'static str {
    match kind {
        ImageType::Bmp => "bmp",
        ImageType::Gif => "gif",
        ImageType::Heif(_) => "heif",
        ImageType::Ico => "ico",
        ImageType::Jpeg => "jpeg",
        ImageType::Jxl => "jpeg-xl",
        ImageType::Png => "png",
        ImageType::Psd => "psd",
        ImageType::Qoi => "qoi",
        ImageType::Tiff => "tiff",
        ImageType::Webp => "webp",
        _ => "other",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The header of a PNG of 3 by 2 pixels.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x08\x02\0\0\0";

    #[test]
    fn formats_and_dimensions_are_read() {
        let info = read(PNG).unwrap();
        assert_eq!((info.format, info.width, info.height, info.camera), ("png", 3, 2, None));
        let gif = read(b"GIF89a\x05\0\x04\0\0\0\0").unwrap();
        assert_eq!((gif.format, gif.width, gif.height), ("gif", 5, 4));
    }

    #[test]
    fn other_and_damaged_files_are_refused() {
        assert!(read(b"%PDF-1.7 and more text").unwrap_err().contains("known format"));
        for length in 0..PNG.len() {
            let _ = read(&PNG[..length]);
        }
        assert!(read(&PNG[..12]).is_err());
    }
}
