//! Reads the WIT that the macros of the Rust SDK generate.
//!
//! A project with these macros needs no WIT files. Each macro stores its WIT text, with doc comments and a zero byte at
//! the end, in a custom section of the core module. The linker joins the texts.

use std::path::Path;

use toolwit_sections::WIT_SOURCE_SECTION;
use wasmparser::{Parser, Payload};

use super::{ResolvedWit, WitError};

/// Returns the WIT packages in the core modules of a component. Texts of one package are merged. `path` is for
/// messages.
///
/// # Errors
/// [`WitError`] if a text is not valid, or two texts of one package contradict each other.
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

    /// Returns a component with a core module that contains these texts.
    fn component(texts: &[&str]) -> Vec<u8> {
        let data: String = texts
            .iter()
            .map(|text| format!("{text}\\00").replace('"', "\\\""))
            .collect();
        let text = format!(r#"(component (core module (@custom "{WIT_SOURCE_SECTION}" "{data}")))"#);
        wat::parse_str(text).unwrap()
    }

    fn read_texts(texts: &[&str]) -> Result<Vec<ResolvedWit>, WitError> {
        read(Path::new("weather.wasm"), &component(texts))
    }

    #[test]
    fn texts_of_one_package_become_one_package() {
        let wit = read_texts(&[
            "package a:b; world f-tool { export f: func(); }",
            "package a:c; interface tides { h: func(); } world tides-plugin { export tides; }",
            "package a:b; interface weather { g: func(); } world weather-plugin { export weather; }",
        ]);
        let packages = wit.unwrap();
        let [wit, other] = packages.as_slice() else {
            panic!("{packages:?}")
        };
        assert_eq!(other.name().to_string(), "a:c");
        let package = &wit.resolve().packages[wit.package()];
        assert_eq!((package.worlds.len(), package.interfaces.len()), (2, 1));
        assert_eq!(wit.encode().unwrap().len(), 1);
    }

    #[test]
    fn component_without_the_section_has_no_wit() {
        assert!(read_texts(&[]).unwrap().is_empty());
        assert!(
            read(Path::new("a"), &wat::parse_str("(component)").unwrap())
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn invalid_text_is_refused_with_the_file() {
        let error = read_texts(&["package a:b; interface {"]).unwrap_err();
        assert!(error.to_string().contains("weather.wasm"), "{error}");
    }
}
