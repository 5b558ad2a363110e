//! The WIT bindings of the image tool.

use std::fs;

use self::bindings::exports::toolwit_demo::image_info::image_info as wit;
use crate::info;

#[allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications)]
mod bindings {
    toolwit_guest::bindings!();
}

bindings::export!(Plugin with_types_in bindings);

/// Maximum size of a file in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

struct Plugin;

impl wit::Guest for Plugin {
    fn describe_image(path: String) -> Result<wit::Info, String> {
        let failed = |error| format!("`{path}` cannot be read; it must be a file in a granted directory: {error}");
        let size = fs::metadata(&path).map_err(failed)?.len();
        if size > FILE_BYTES_MAX {
            return Err(format!("`{path}` has {size} bytes; the limit is 64 MiB"));
        }
        let bytes = fs::read(&path).map_err(failed)?;
        let info = info::read(&bytes).map_err(|error| format!("`{path}`: {error}"))?;
        Ok(wit::Info {
            format: info.format.to_owned(),
            width: count(info.width),
            height: count(info.height),
            bytes: size,
            camera: info.camera.map(|camera| wit::CameraData {
                make: camera.make,
                model: camera.model,
                taken: camera.taken,
                orientation: camera.orientation,
            }),
        })
    }
}

/// Converts a count for the caller. `usize` has 32 bits on this target.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
