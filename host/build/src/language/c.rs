//! Builds plugins in C and C++ with the compiler of the WASI SDK or of Zig.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    Language, LanguageBuild, MissingTool,
    bindings::{self, BINDINGS_DIR},
    tool::ToolProgram,
    zig,
};
use crate::{BuildError, Progress};

/// The directory of the programs of the WASI SDK. By convention, the SDK is unpacked in `/opt`.
const WASI_SDK_BIN: &str = "/opt/wasi-sdk/bin";

/// A language of the C family, with the programs and arguments that compile it.
#[derive(Debug)]
pub(super) struct CDialect {
    language: Language,
    /// The name of the compiler in the WASI SDK.
    clang_name: &'static str,
    /// The first arguments of `zig`, which select its compiler.
    zig_arguments: &'static [&'static str],
    /// The extensions, without a dot, of the files that are compiled or linked.
    extensions: &'static [&'static str],
    /// Further arguments of the compiler.
    compiler_arguments: &'static [&'static str],
}

/// The language C.
pub(super) const C: CDialect = CDialect {
    language: Language::C,
    clang_name: "clang",
    zig_arguments: &["cc"],
    extensions: &["c", "o"],
    compiler_arguments: &[],
};

/// The language C++. The bindings use `std::expected` of C++23. The C++ library for WebAssembly does not support
/// exceptions.
pub(super) const CPP: CDialect = CDialect {
    language: Language::Cpp,
    clang_name: "clang++",
    zig_arguments: &["c++"],
    extensions: &["cc", "cpp", "o"],
    compiler_arguments: &["-std=c++23", "-fno-exceptions"],
};

impl CDialect {
    /// Finds the compiler of the WASI SDK or, if it is not installed, of Zig.
    pub(super) fn compiler(&self, dir: &Path) -> Result<ToolProgram, MissingTool> {
        match ToolProgram::at(&Path::new(WASI_SDK_BIN).join(self.clang_name)) {
            Some(clang) => Ok(clang),
            None => Ok(zig::program(dir, self.language)?.with_first_arguments(self.zig_arguments)),
        }
    }

    pub(super) async fn build(
        &self,
        build: &LanguageBuild<'_>,
        progress: &dyn Progress,
    ) -> Result<PathBuf, BuildError> {
        let compiler = self.compiler(build.dir)?;
        bindings::update(self.language, build.dir, build.wit, build.world)?;
        let output = build.output_path();
        let mut arguments: Vec<OsString> = [
            "--target=wasm32-wasi",
            "-Os",
            "-mexec-model=reactor",
            "-Wl,--strip-debug",
        ]
        .map(Into::into)
        .to_vec();
        arguments.extend(self.compiler_arguments.iter().map(Into::into));
        arguments.extend(["-I", ".", "-I", BINDINGS_DIR].map(Into::into));
        for dir in [build.dir, &build.dir.join(BINDINGS_DIR)] {
            arguments.extend(files_with_extensions(dir, self.extensions)?.into_iter().map(Into::into));
        }
        arguments.extend(["-o".into(), output.clone().into()]);
        compiler.run(build.dir, arguments, build.time_limit, progress).await?;
        Ok(output)
    }
}

/// The programs that compile C code for WASI.
#[derive(Debug)]
pub(crate) enum CTools {
    /// The programs of the WASI SDK.
    WasiSdk {
        /// The path of `clang`.
        compiler: PathBuf,
        /// The path of `llvm-ar`.
        archiver: PathBuf,
    },
    /// The program `zig`, with its path.
    Zig(PathBuf),
}

/// Finds the programs that compile the C code of the project in `dir`.
pub(crate) fn find_c_tools(dir: &Path) -> Result<CTools, MissingTool> {
    let [compiler, archiver] = ["clang", "llvm-ar"].map(|name| Path::new(WASI_SDK_BIN).join(name));
    if compiler.is_file() && archiver.is_file() {
        return Ok(CTools::WasiSdk { compiler, archiver });
    }
    zig::program(dir, Language::C).map(|zig| CTools::Zig(zig.into_path()))
}

/// Returns the files in a directory with one of the extensions, sorted by name.
pub(super) fn files_with_extensions(dir: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, BuildError> {
    let read = || -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
        let mut files: Vec<_> = entries.iter().map(fs::DirEntry::path).collect();
        files.retain(|file| {
            file.extension()
                .is_some_and(|extension| extensions.iter().any(|listed| extension == *listed))
        });
        files.sort();
        Ok(files)
    };
    read().map_err(BuildError::file("read", dir))
}
