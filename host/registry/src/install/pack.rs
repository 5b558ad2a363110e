//! Embedding a manifest in the component that it describes, so that a package is a single file.

use wasm_encoder::{ComponentNameSection, ComponentSection, ProducersField, ProducersSection};

use crate::manifest::ui_pages::UiPages;
use crate::manifest::{MANIFEST_SECTION, Manifest};
use crate::scan::{DESCRIPTION_SECTION, VERSION_SECTION};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::{Inspection, PackageContext, replace_custom_sections};
use toolwit_sections::{UI_SECTION, custom_section};

/// The standard section for a component's name.
const NAME_SECTION: &str = "component-name";

/// The standard section for the programs that produced a component.
const PRODUCERS_SECTION: &str = "producers";

/// Embeds a manifest in a component, together with the UI pages that the manifest names. Removes all other embedded UI pages. A UI
/// page is the HTML document of a user interface.
///
/// `name` is the plugin's name. `toml` is the text of the manifest, and `origin` is the name of its file in errors. `read_ui_page`
/// receives the file name of a UI page and returns the content of the file. It returns `None` if there is no such file: then the
/// embedded UI page with this name is kept.
///
/// The manifest's version and description are also written to the standard sections, which other programs read. Missing
/// name and producers sections are added. Everything else is unchanged, byte for byte.
///
/// # Errors
/// Those of [`Manifest::parse`] and of `read_ui_page`. [`ErrorKind::Configuration`] if the manifest describes an export that the
/// component does not have, or names a UI page that is neither in a file nor embedded, or if the UI pages are too large. Those of
/// [`Inspection::from_bytes`] if the bytes are not a usable component.
pub fn pack(
    component: &[u8],
    name: &str,
    toml: &str,
    origin: &str,
    read_ui_page: &dyn Fn(&str) -> Result<Option<String>, Error>,
) -> Result<Vec<u8>, Error> {
    let manifest = Manifest::parse(toml, origin)?;
    let ui_pages = UiPages::of(&manifest, component, read_ui_page)?;
    let context = PackageContext {
        name,
        adjacent_wit: None,
    };
    Inspection::from_bytes_with(component, context, &manifest.annotations())?;
    let mut packed = replace_sections(component, MANIFEST_SECTION, &[toml.as_bytes().to_vec()])?;
    packed = replace_sections(&packed, UI_SECTION, &ui_pages.section_contents()?)?;
    let standard_sections = [
        (VERSION_SECTION, &manifest.version),
        (DESCRIPTION_SECTION, &manifest.description),
    ];
    for (section, text) in standard_sections {
        if let Some(text) = text {
            packed = replace_sections(&packed, section, &[text.as_bytes().to_vec()])?;
        }
    }
    if custom_section(&packed, NAME_SECTION).is_none() {
        let mut names = ComponentNameSection::new();
        names.component(name);
        names.append_to_component(&mut packed);
    }
    if custom_section(&packed, PRODUCERS_SECTION).is_none() {
        let mut processed_by = ProducersField::new();
        processed_by.value("toolwit", env!("CARGO_PKG_VERSION"));
        let mut producers = ProducersSection::new();
        producers.field("processed-by", &processed_by);
        producers.append_to_component(&mut packed);
    }
    Ok(packed)
}

/// Replaces all custom sections of one name by sections with these contents.
fn replace_sections(component: &[u8], section: &str, contents: &[Vec<u8>]) -> Result<Vec<u8>, Error> {
    replace_custom_sections(component, section, contents).map_err(|error| {
        let message = format!("the section `{section}` cannot be embedded: {error}");
        Error::new(ErrorKind::MalformedComponent, Phase::Load, message).with_source(error)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Reads UI pages from a directory without UI pages.
    #[allow(clippy::unnecessary_wraps, reason = "`pack` takes a function of this type")]
    fn no_ui_page(_name: &str) -> Result<Option<String>, Error> {
        Ok(None)
    }

    fn component() -> Vec<u8> {
        wat::parse_str(
            r#"(component
                (core module $m (func (export "f") (result i32) i32.const 1))
                (core instance $i (instantiate $m))
                (func (export "one") (result s32) (canon lift (core func $i "f"))))"#,
        )
        .unwrap()
    }

    // accept: 104
    #[test]
    fn packed_manifest_is_read_back_and_replaced_by_the_next() {
        let first = pack(
            &component(),
            "one",
            "version = \"1.0.0\"\ncategory = \"numbers\"",
            "one.toml",
            &no_ui_page,
        )
        .unwrap();
        let manifest = Manifest::embedded(&first).unwrap().unwrap();
        assert_eq!(manifest.category.as_deref(), Some("numbers"));
        assert_eq!(custom_section(&first, "version"), Some(&b"1.0.0"[..]));
        assert!(custom_section(&first, NAME_SECTION).is_some() && custom_section(&first, PRODUCERS_SECTION).is_some());
        assert!(first.starts_with(&component()), "the other bytes are unchanged");
        let second = pack(&first, "one", "version = \"2.0.0\"", "one.toml", &no_ui_page).unwrap();
        assert_eq!(custom_section(&second, "version"), Some(&b"2.0.0"[..]));
        assert_eq!(Manifest::embedded(&second).unwrap().unwrap().category, None);
        assert_eq!(
            pack(&second, "one", "version = \"2.0.0\"", "one.toml", &no_ui_page).unwrap(),
            second,
            "packing twice changes nothing"
        );
    }

    #[test]
    fn ui_pages_are_embedded_kept_and_removed() {
        let manifest = "[[tools]]\nexport = \"one\"\nui = \"one.html\"";
        let missing = pack(&component(), "one", manifest, "one.toml", &no_ui_page).unwrap_err();
        assert!(missing.message.contains("one.html"), "{missing}");
        let read_page = |name: &str| Ok(Some(format!("<p>{name}</p>")));
        let first = pack(&component(), "one", manifest, "one.toml", &read_page).unwrap();
        let document = |component: &[u8]| UiPages::embedded(component).unwrap().into_document("one.html");
        assert_eq!(document(&first).as_deref(), Some("<p>one.html</p>"));
        let again = pack(&first, "one", manifest, "one.toml", &no_ui_page).unwrap();
        assert_eq!(
            document(&again).as_deref(),
            Some("<p>one.html</p>"),
            "kept without its file"
        );
        let without = pack(&first, "one", "version = \"2\"", "one.toml", &no_ui_page).unwrap();
        assert_eq!(document(&without), None);
        let fail = |name: &str| Err(Error::new(ErrorKind::Io, Phase::Registry, name.to_owned()));
        assert!(
            pack(&first, "one", manifest, "one.toml", &fail).is_err(),
            "a file that cannot be read is not replaced by the earlier page"
        );
        let read_large_page = |_: &str| Ok(Some("x".repeat(5 << 20)));
        assert!(pack(&component(), "one", manifest, "one.toml", &read_large_page).is_err());
        for name in ["../x.html", "/etc/passwd", ".html", "a b", ""] {
            let manifest = format!("[[tools]]\nexport = \"one\"\nui = {name:?}");
            let refused = pack(&component(), "one", &manifest, "one.toml", &read_page).unwrap_err();
            assert!(refused.message.contains("file name"), "{refused}");
        }
    }

    // accept: 138
    #[test]
    fn manifest_of_another_component_is_refused() {
        let wrong = "[[tools]]\nexport = \"two\"";
        let error = pack(&component(), "one", wrong, "one.toml", &no_ui_page).unwrap_err();
        assert!(error.message.contains("`two`"), "{error}");
        assert!(
            error.suggestion.as_deref().unwrap_or_default().contains("`one`"),
            "{error:?}"
        );
        assert!(pack(b"not a component", "one", "", "one.toml", &no_ui_page).is_err());
    }
}
