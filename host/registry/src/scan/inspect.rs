//! Reading a component together with its manifest.

use std::path::Path;

use crate::manifest::ui_pages::UiPages;
use crate::manifest::{Manifest, is_valid_version};
use crate::text_file;
use toolwit_core::Error;
use toolwit_core::limits::EngineLimits;
use toolwit_sandbox::{AdjacentWit, Inspection, Lint, PackageContext, lint, read_component, read_wit};
use toolwit_sections::custom_section;

/// The standard custom section with a component's version.
pub(crate) const VERSION_SECTION: &str = "version";

/// The standard custom section with a component's description.
pub(crate) const DESCRIPTION_SECTION: &str = "description";

/// The largest accepted text of a standard section, in bytes.
const STANDARD_TEXT_BYTES_MAX: usize = 1_024;

/// Inspects a component file of at most `bytes_max` bytes as a plugin with this name, and reads its manifest. Does not
/// compile or run the component. Blocks.
///
/// # Errors
/// Those of [`Inspection::from_bytes_with`], those of reading the component and the manifest, and
/// [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) if the component lacks a UI page that the
/// manifest names.
pub fn inspect_package(name: &str, path: &Path, bytes_max: u64) -> Result<(Inspection, Option<Manifest>), Error> {
    let bytes = read_component(path, bytes_max)?;
    let manifest = Manifest::from_file(&path.with_extension("toml"))?;
    let wit = read_wit(&path.with_extension("wit"));
    let context = PackageContext {
        name,
        adjacent_wit: wit.as_ref(),
    };
    inspect_component(&bytes, context, manifest)
}

/// The content of the files of a package.
pub(crate) struct PackageContent<'a> {
    pub(crate) component: &'a [u8],
    /// The content and the name of the manifest file, if there is one.
    pub(crate) manifest: Option<(&'a [u8], &'a str)>,
    /// The WIT file, if there is one.
    pub(crate) wit: Option<&'a [u8]>,
}

/// Inspects a package like [`inspect_package`], but from the content of its files in memory.
pub(crate) fn inspect_content(
    name: &str,
    content: &PackageContent<'_>,
) -> Result<(Inspection, Option<Manifest>), Error> {
    let manifest = content.manifest.map(|(text, origin)| {
        let text = std::str::from_utf8(text).map_err(|_| text_file::unusable(origin, "it is not UTF-8 text"))?;
        Manifest::parse(text, origin)
    });
    let wit = content.wit.map(|text| match std::str::from_utf8(text) {
        Ok(text) => AdjacentWit::Text(text.to_owned()),
        Err(_) => AdjacentWit::Unreadable("it is not UTF-8 text".to_owned()),
    });
    let context = PackageContext {
        name,
        adjacent_wit: wit.as_ref(),
    };
    inspect_component(content.component, context, manifest.transpose()?)
}

/// Inspects a component, and returns its manifest: `manifest` or, if this is `None`, the manifest in the component. A
/// missing version or description is taken from the standard sections of the component.
pub(super) fn inspect_component(
    bytes: &[u8],
    context: PackageContext<'_>,
    manifest: Option<Manifest>,
) -> Result<(Inspection, Option<Manifest>), Error> {
    let manifest = match manifest {
        Some(manifest) => Some(manifest),
        None => Manifest::embedded(bytes)?,
    };
    let manifest = with_standard_sections(manifest, bytes);
    if let Some(manifest) = &manifest {
        UiPages::embedded(bytes)?.check(manifest)?;
    }
    let annotations = manifest.as_ref().map(Manifest::annotations).unwrap_or_default();
    Ok((Inspection::from_bytes_with(bytes, context, &annotations)?, manifest))
}

/// Checks the docs, names and WIT of a component file, with its manifest, and returns the findings. Does not compile or
/// run the component.
///
/// # Errors
/// Those of [`inspect_package`].
pub async fn lint_package(path: &Path) -> Result<Vec<Lint>, Error> {
    let path = path.to_owned();
    super::blocking(move || {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let bytes_max = EngineLimits::default().component_bytes_max;
        let (_, manifest) = inspect_package(&name, &path, bytes_max)?;
        let wit = read_wit(&path.with_extension("wit"));
        let context = PackageContext {
            name: &name,
            adjacent_wit: wit.as_ref(),
        };
        let annotations = manifest.as_ref().map(Manifest::annotations).unwrap_or_default();
        lint(&read_component(&path, bytes_max)?, context, &annotations)
    })
    .await
}

/// Adds the version and the description in the standard sections of a component to its manifest, if the manifest lacks
/// them. Creates a manifest for them if the component has none. Ignores invalid text.
fn with_standard_sections(manifest: Option<Manifest>, component: &[u8]) -> Option<Manifest> {
    let section_text = |name: &str| {
        let text = std::str::from_utf8(custom_section(component, name)?).ok()?.trim();
        let is_accepted =
            !text.is_empty() && text.len() <= STANDARD_TEXT_BYTES_MAX && !text.chars().any(char::is_control);
        is_accepted.then(|| text.to_owned())
    };
    let version = section_text(VERSION_SECTION).filter(|version| is_valid_version(version));
    let description = section_text(DESCRIPTION_SECTION);
    if manifest.is_none() && version.is_none() && description.is_none() {
        return None;
    }
    let mut manifest = manifest.unwrap_or_default();
    manifest.version = manifest.version.or(version);
    manifest.description = manifest.description.or(description);
    Some(manifest)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use toolwit_sandbox::replace_custom_sections;

    use super::*;

    #[test]
    fn version_in_a_section_is_used_if_it_is_valid() {
        let version_of = |text: &str| {
            let contents = [text.as_bytes().to_vec()];
            let component = replace_custom_sections(b"\0asm\x0d\0\x01\0", VERSION_SECTION, &contents).unwrap();
            with_standard_sections(None, &component).and_then(|manifest| manifest.version)
        };
        assert_eq!(version_of("1.2.3").unwrap(), "1.2.3");
        assert_eq!(version_of(&"1".repeat(200)), None, "too long");
        assert_eq!(version_of("1.2\u{200b}.3"), None, "an invisible character");
    }
}
