//! Generates bindings from the WIT, for languages whose toolchain does not generate them.
//!
//! Most of the generated files are in the directory [`BINDINGS_DIR`] of a project, next to a file with a digest of the
//! WIT and of the generator's version. A build generates the bindings again if the digest has changed.

use std::{
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use wit_bindgen_core::{Files, WorldGenerator};

use super::{Language, go, is_async};
use crate::{BuildError, ResolvedWit};

/// The directory of the generated files, relative to the project's directory.
pub(super) const BINDINGS_DIR: &str = "bindings";

/// The file with the digest, in the directory [`BINDINGS_DIR`].
const DIGEST_FILE: &str = "wit.digest";

/// The generator and its version, as the header of a generated C file names them. They are part of the digest, so that
/// another version generates the bindings again.
const GENERATOR: &str = "`wit-bindgen` 0.60.0";

/// The extensions of the files that are removed from [`BINDINGS_DIR`] before new files are written. Otherwise, files of
/// an earlier WIT would be compiled too.
const GENERATED_EXTENSIONS: [&str; 6] = ["c", "cpp", "h", "o", "template", "zig"];

/// Generates the bindings of a project, unless the bindings of this WIT exist. Returns whether it generated them.
///
/// Does nothing for a language whose toolchain generates the bindings.
pub(crate) fn update(
    language: Language,
    dir: &Path,
    wit: &ResolvedWit,
    world: Option<&str>,
) -> Result<bool, BuildError> {
    let Some(generator) = generator(language, dir) else {
        return Ok(false);
    };
    let bindings_dir = dir.join(BINDINGS_DIR);
    let digest = digest(language, wit, world)?;
    if fs::read_to_string(bindings_dir.join(DIGEST_FILE)).is_ok_and(|recorded| recorded == digest) {
        return Ok(false);
    }
    // The generator for C++ silently omits async functions.
    if language == Language::Cpp && is_async(wit, world)? {
        let message = "it has async functions, streams or futures, which are supported in C".to_owned();
        return Err(BuildError::Bindings { language, message });
    }
    let files = generate(generator, language, wit, world)?;
    let result = write(language, dir, &files).and_then(|()| fs::write(bindings_dir.join(DIGEST_FILE), digest));
    result.map_err(BuildError::file("write", bindings_dir))?;
    Ok(true)
}

/// Returns the generator of a language, or `None` if its toolchain generates the bindings.
fn generator(language: Language, dir: &Path) -> Option<Box<dyn WorldGenerator>> {
    match language {
        Language::C | Language::Zig => Some(wit_bindgen_c::Opts::default().build()),
        // The generator needs the directory to check which resource classes exist there.
        Language::Cpp => Some(wit_bindgen_cpp::Opts::default().build(Some(&dir.to_owned()))),
        Language::Go => Some(go_options().build()),
        Language::Rust | Language::Python | Language::JavaScript | Language::TypeScript => None,
    }
}

/// Returns the options of the generator for Go. The generator must not format its output: it would start any program on
/// `PATH` with the name `gofmt`.
fn go_options() -> wit_bindgen_go::Opts {
    wit_bindgen_go::Opts {
        format: wit_bindgen_go::Format::False,
        ..wit_bindgen_go::Opts::default()
    }
}

fn generate(
    mut generator: Box<dyn WorldGenerator>,
    language: Language,
    wit: &ResolvedWit,
    world: Option<&str>,
) -> Result<Files, BuildError> {
    let world = wit.world(world)?;
    let generated = catch_unwind(AssertUnwindSafe(|| {
        let mut files = Files::default();
        let generated = generator.generate(&mut wit.resolve().clone(), world, &mut files);
        generated.map(|()| files).map_err(|error| format!("{error:#}"))
    }));
    let failure = |message| BuildError::Bindings { language, message };
    match generated {
        Ok(files) => files.map_err(failure),
        Err(_panic) => Err(failure("the generator does not support a type of the WIT".to_owned())),
    }
}

/// Writes the generated files, and removes the generated files of an earlier WIT.
fn write(language: Language, dir: &Path, files: &Files) -> io::Result<()> {
    let bindings_dir = dir.join(BINDINGS_DIR);
    fs::create_dir_all(&bindings_dir)?;
    let is_generated = |path: &Path| {
        let is_listed = |extension| GENERATED_EXTENSIONS.iter().any(|listed| extension == *listed);
        path.extension().is_some_and(is_listed)
    };
    remove_files(&bindings_dir, is_generated)?;
    if language == Language::Go {
        return go::write(dir, files);
    }
    for (name, content) in files.iter() {
        fs::write(file_path(dir, name), content)?;
    }
    Ok(())
}

/// Removes the files of a directory for which `must_remove` returns `true`.
pub(super) fn remove_files(dir: &Path, must_remove: impl Fn(&Path) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_file() && must_remove(&path) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Returns the path of a generated file.
///
/// In C++, the class of an exported resource is in a header that the author of the plugin completes. The header is in
/// the project's directory, and the generator writes it only if it is missing. All other files are in [`BINDINGS_DIR`].
fn file_path(dir: &Path, name: &str) -> PathBuf {
    if name.starts_with("exports-") && !name.ends_with(".template") {
        dir.join(name)
    } else {
        dir.join(BINDINGS_DIR).join(name)
    }
}

/// Returns the content of the file [`DIGEST_FILE`]: a digest of the generator, the language, the world and the WIT.
fn digest(language: Language, wit: &ResolvedWit, world: Option<&str>) -> Result<String, BuildError> {
    let mut hasher = blake3::Hasher::new();
    for text in [GENERATOR, language.short_name(), world.unwrap_or_default()] {
        hasher.update(text.as_bytes()).update(&[0]);
    }
    for package in wit.encode()? {
        hasher.update(&package);
    }
    Ok(format!("{}\n", hasher.finalize()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const WIT: &str = "package a:b; interface i { resource r { m: func(); } f: func(text: string) -> string; } \
                       world w { export i; }";

    fn wit(text: &str) -> ResolvedWit {
        ResolvedWit::parse(Path::new("plugin.wit"), text).unwrap()
    }

    #[test]
    fn bindings_are_generated_again_only_after_a_change_of_the_wit() {
        for language in [Language::C, Language::Cpp, Language::Zig, Language::Go] {
            let dir = tempfile::tempdir().unwrap();
            assert!(update(language, dir.path(), &wit(WIT), None).unwrap());
            assert!(!update(language, dir.path(), &wit(WIT), None).unwrap());
            fs::write(dir.path().join("bindings/old.c"), "").unwrap();
            fs::write(dir.path().join("bindings/notes.md"), "").unwrap();
            assert!(update(language, dir.path(), &wit(&WIT.replace("text", "words")), None).unwrap());
            assert!(!dir.path().join("bindings/old.c").exists());
            assert!(dir.path().join("bindings/notes.md").exists());
        }
        let dir = tempfile::tempdir().unwrap();
        assert!(!update(Language::Python, dir.path(), &wit(WIT), None).unwrap());
    }

    #[test]
    fn the_header_of_a_resource_class_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        update(Language::Cpp, dir.path(), &wit(WIT), None).unwrap();
        let class = dir.path().join("exports-a-b-i-R.h");
        assert!(fs::read_to_string(&class).unwrap().contains("class R"));
        fs::write(&class, "mine").unwrap();
        assert!(update(Language::Cpp, dir.path(), &wit(&WIT.replace("m:", "n:")), None).unwrap());
        assert_eq!(fs::read_to_string(&class).unwrap(), "mine");
        let template = fs::read_to_string(dir.path().join("bindings/exports-a-b-i-R.h.template")).unwrap();
        assert!(template.contains("void N()"), "{template}");
    }

    #[test]
    fn generated_files_name_the_version_that_is_in_the_digest() {
        let dir = tempfile::tempdir().unwrap();
        update(Language::C, dir.path(), &wit(WIT), None).unwrap();
        let header = fs::read_to_string(dir.path().join("bindings/w.h")).unwrap();
        assert!(header.contains(GENERATOR), "{header}");
    }
}
