//! Camera data (EXIF) of JPEG, PNG, WebP and TIFF files. Offsets of the file are not trusted: every access is checked.

/// Tags of the values that are read.
const MAKE: u16 = 0x010f;
const MODEL: u16 = 0x0110;
const ORIENTATION: u16 = 0x0112;
const CHANGED: u16 = 0x0132;
const EXIF: u16 = 0x8769;
const TAKEN: u16 = 0x9003;

/// Maximum length of a text in bytes.
const TEXT_BYTES_MAX: usize = 256;

/// The camera data of a picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CameraData {
    /// The manufacturer.
    pub make: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The local time at which the picture was taken, or else changed.
    pub taken: Option<String>,
    /// The orientation, from 1 to 8.
    pub orientation: Option<u16>,
}

/// Finds the EXIF block of a file.
#[must_use]
pub fn find(file: &[u8]) -> Option<&[u8]> {
    if file.starts_with(b"II*\0") || file.starts_with(b"MM\0*") {
        Some(file)
    } else if file.starts_with(&[0xff, 0xd8]) {
        find_in_jpeg(file)
    } else if file.starts_with(b"\x89PNG\r\n\x1a\n") {
        find_in_chunks(file.get(8..)?, b"eXIf", |chunk| {
            let length = u32::from_be_bytes(chunk.get(..4)?.try_into().ok()?) as usize;
            // Length, name, content and checksum.
            Some((chunk.get(4..8)?, length, 12))
        })
    } else if file.starts_with(b"RIFF") && file.get(8..12)? == b"WEBP" {
        find_in_chunks(file.get(12..)?, b"EXIF", |chunk| {
            let length = u32::from_le_bytes(chunk.get(4..8)?.try_into().ok()?) as usize;
            Some((chunk.get(..4)?, length, 8 + (length & 1)))
        })
    } else {
        None
    }
}

fn find_in_jpeg(file: &[u8]) -> Option<&[u8]> {
    let mut rest = file.get(2..)?;
    loop {
        // No EXIF segment follows the start of the image data.
        if *rest.first()? != 0xff || *rest.get(1)? == 0xda {
            return None;
        }
        let length = usize::from(u16::from_be_bytes(rest.get(2..4)?.try_into().ok()?));
        let content = rest.get(4..2 + length)?;
        if rest[1] == 0xe1
            && let Some(block) = content.strip_prefix(b"Exif\0\0")
        {
            return Some(block);
        }
        rest = rest.get(2 + length..)?;
    }
}

/// Finds a chunk by its name. `header` returns the name, the length, and the number of bytes around the content.
fn find_in_chunks<'a>(
    file: &'a [u8],
    name: &[u8],
    header: impl Fn(&'a [u8]) -> Option<(&'a [u8], usize, usize)>,
) -> Option<&'a [u8]> {
    let mut rest = file;
    loop {
        let (chunk_name, length, around) = header(rest)?;
        if chunk_name == name {
            let content = rest.get(8..8usize.checked_add(length)?)?;
            return Some(content.strip_prefix(b"Exif\0\0").unwrap_or(content));
        }
        rest = rest.get(length.checked_add(around)?..)?;
    }
}

/// Reads an EXIF block. Returns `None` if it is damaged or has no camera data.
#[must_use]
pub fn read(block: &[u8]) -> Option<CameraData> {
    let block = Block {
        bytes: block,
        is_little: block.starts_with(b"II"),
    };
    let first = block.read_u32(4)?;
    let (mut data, details) = block.read_directory(first);
    if let Some(offset) = details {
        let (more, _) = block.read_directory(offset);
        data.taken = more.taken.or(data.taken);
    }
    (data != CameraData::default()).then_some(data)
}

struct Block<'a> {
    bytes: &'a [u8],
    is_little: bool,
}

impl Block<'_> {
    fn read_u16(&self, offset: usize) -> Option<u16> {
        let bytes = self.bytes.get(offset..offset.checked_add(2)?)?.try_into().ok()?;
        Some(if self.is_little {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        })
    }

    fn read_u32(&self, offset: usize) -> Option<usize> {
        let bytes = self.bytes.get(offset..offset.checked_add(4)?)?.try_into().ok()?;
        Some(if self.is_little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        } as usize)
    }

    /// Returns the camera data of a directory, and the position of the directory with the details.
    fn read_directory(&self, start: usize) -> (CameraData, Option<usize>) {
        let (mut data, mut details) = (CameraData::default(), None);
        for index in 0..usize::from(self.read_u16(start).unwrap_or(0)) {
            let Some(entry) = start.checked_add(2 + 12 * index) else {
                break;
            };
            let Some(tag) = self.read_u16(entry) else { break };
            match tag {
                MAKE => data.make = self.read_text(entry),
                MODEL => data.model = self.read_text(entry),
                TAKEN => data.taken = self.read_text(entry).map(|text| iso_time(&text)),
                CHANGED if data.taken.is_none() => data.taken = self.read_text(entry).map(|text| iso_time(&text)),
                ORIENTATION => data.orientation = self.read_u16(entry + 8).filter(|number| (1..=8).contains(number)),
                EXIF => details = self.read_u32(entry + 8),
                _ => {}
            }
        }
        (data, details)
    }

    /// Reads the text of an entry.
    fn read_text(&self, entry: usize) -> Option<String> {
        let length = self.read_u32(entry + 4)?;
        // A text of at most four bytes is in the entry itself.
        let start = if length <= 4 {
            entry + 8
        } else {
            self.read_u32(entry + 8)?
        };
        let bytes = self.bytes.get(start..start.checked_add(length.min(TEXT_BYTES_MAX))?)?;
        let text = String::from_utf8_lossy(bytes);
        let text = text.split('\0').next().unwrap_or_default().trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// Converts `2026:03:01 09:30:00` to `2026-03-01T09:30:00`.
fn iso_time(text: &str) -> String {
    match text.split_once(' ') {
        Some((date, time)) => format!("{}T{time}", date.replace(':', "-")),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// An EXIF block with a make, an orientation and a time.
    fn block() -> Vec<u8> {
        let entry = |tag: u16, kind: u16, length: u32, value: u32| {
            [
                &tag.to_le_bytes()[..],
                &kind.to_le_bytes(),
                &length.to_le_bytes(),
                &value.to_le_bytes(),
            ]
            .concat()
        };
        let mut block = b"II*\0\x08\0\0\0\x03\0".to_vec();
        block.extend(entry(MAKE, 2, 3, u32::from_le_bytes(*b"Ab\0\0")));
        block.extend(entry(ORIENTATION, 3, 1, 6));
        block.extend(entry(EXIF, 4, 1, 46));
        block.extend(b"\x01\0");
        block.truncate(46);
        block.extend(b"\x01\0");
        block.extend(entry(TAKEN, 2, 20, 60));
        block.extend(b"2026:03:01 09:30:00\0");
        block
    }

    #[test]
    fn camera_data_are_read_from_each_container() {
        let expected = CameraData {
            make: Some("Ab".to_owned()),
            model: None,
            taken: Some("2026-03-01T09:30:00".to_owned()),
            orientation: Some(6),
        };
        let block = block();
        assert_eq!(read(&block), Some(expected.clone()));
        let length = (block.len() + 8) as u16;
        let jpeg = [
            b"\xff\xd8\xff\xe0\0\x04ab\xff\xe1".as_slice(),
            &length.to_be_bytes(),
            b"Exif\0\0",
            &block,
        ];
        let size = block.len() as u32;
        let png = [
            b"\x89PNG\r\n\x1a\n\0\0\0\x01IHDRxcrcc".as_slice(),
            &size.to_be_bytes(),
            b"eXIf",
            &block,
        ];
        let webp = [
            b"RIFF\0\0\0\0WEBPVP8X\x01\0\0\0x\0EXIF".as_slice(),
            &size.to_le_bytes(),
            &block,
            &[],
        ];
        for file in [jpeg.concat(), png.concat(), webp.concat(), block] {
            assert_eq!(find(&file).and_then(read), Some(expected.clone()));
        }
    }

    #[test]
    fn damaged_blocks_are_read_as_far_as_possible() {
        let block = block();
        for length in 0..block.len() {
            let _ = read(&block[..length]);
        }
        for position in 0..block.len() {
            let mut damaged = block.clone();
            damaged[position] = 0xff;
            let _ = read(&damaged);
        }
        assert_eq!(read(b"II*\0\xff\xff\xff\xff"), None);
        assert_eq!(find(b"\xff\xd8\xff\xe1\xff\xff"), None);
    }
}
