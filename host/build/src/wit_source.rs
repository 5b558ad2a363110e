//! Reads the WIT that the macros of the Rust SDK generate.
//!
//! A project with these macros needs no WIT files. Each macro stores its WIT text, with doc comments and a zero byte at
//! the end, in a custom section of the core module. The linker joins the texts.

use std::path::Path;

use toolwit_sections::WIT_SOURCE_SECTION;
use wasmparser::{Parser, Payload};

use super::{ResolvedWit, WitError};

/// Returns the WIT packages in the core modules of a component. Texts of one package are merged. `path` is the
/// path of the component, for error messages.
///
/// # Errors
/// [`WitError`] if a text cannot be parsed, or two texts of one package cannot be merged.
pub(super) fn read(path: &Path, component: &[u8]) -> Result<Vec<ResolvedWit>, WitError> {
    let mut packages: Vec<ResolvedWit> = Vec::new();
    for payload in Parser::new(0).parse_all(component) {
        let Ok(Payload::CustomSection(section)) = payload else {
            continue;
        };
        if section.name() != WIT_SOURCE_SECTION {
            continue;
        }
        let texts = section.data().split(|byte| *byte == 0).filter(|text| !text.is_empty());
        for text in texts {
            let wit = ResolvedWit::parse(path, &String::from_utf8_lossy(text))?;
            match packages.iter_mut().find(|package| package.name() == wit.name()) {
                Some(package) => package.merge(path, wit)?,
                None => packages.push(wit),
            }
        }
    }
    Ok(packages)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    /// Returns a component with a core module. The module's custom section contains the WIT texts, each with a zero byte
    /// at the end.
    fn component_with(wit_texts: &[&str]) -> Vec<u8> {
        let section_data: String = wit_texts
            .iter()
            .map(|text| format!("{text}\\00").replace('"', "\\\""))
            .collect();
        let component = format!(r#"(component (core module (@custom "{WIT_SOURCE_SECTION}" "{section_data}")))"#);
        wat::parse_str(component).unwrap()
    }

    fn read_texts(wit_texts: &[&str]) -> Result<Vec<ResolvedWit>, WitError> {
        read(Path::new("weather.wasm"), &component_with(wit_texts))
    }

    #[test]
    fn texts_of_one_package_become_one_package() {
        let packages = read_texts(&[
            "package a:b; world f-tool { export f: func(); }",
            "package a:c; interface tides { h: func(); } world tides-plugin { export tides; }",
            "package a:b; interface weather { g: func(); } world weather-plugin { export weather; }",
        ])
        .unwrap();
        let [weather, tides] = packages.as_slice() else {
            panic!("{packages:?}")
        };
        assert_eq!(tides.name().to_string(), "a:c");
        let package = &weather.resolve().packages[weather.package()];
        assert_eq!((package.worlds.len(), package.interfaces.len()), (2, 1));
        assert_eq!(weather.encode().unwrap().len(), 1);
    }

    #[test]
    fn component_without_wit_texts_has_no_wit_packages() {
        assert!(read_texts(&[]).unwrap().is_empty());
        assert!(
            read(Path::new("a.wasm"), &wat::parse_str("(component)").unwrap())
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn error_about_an_invalid_text_names_the_component() {
        let error = read_texts(&["package a:b; interface {"]).unwrap_err();
        assert!(error.to_string().contains("weather.wasm"), "{error}");
    }
}
