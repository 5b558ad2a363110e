//! The WIT bindings of the shell.

use std::fs;

use wasip2::filesystem::preopens::get_directories;

use self::bindings::exports::toolwit_demo::shell::shell as wit;
use crate::Shell;

#[allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications)]
mod bindings {
    toolwit_guest::bindings!();
}

bindings::export!(Plugin with_types_in bindings);

struct Plugin;

impl wit::Guest for Plugin {
    fn run_script(script: String, directory: Option<String>, input: Option<String>) -> Result<wit::Outcome, String> {
        let roots = granted_directories();
        let directory = directory
            .or_else(|| roots.first().cloned())
            .unwrap_or_else(|| "/".to_owned());
        let outcome = Shell::new(directory.into(), roots).run(&script, &input.unwrap_or_default())?;
        Ok(wit::Outcome {
            stdout: outcome.stdout,
            stderr: outcome.stderr,
            status: outcome.status,
        })
    }
}

/// Lists the granted directories. The host reports `/` even if it is not granted, so `/` is listed only if it is the only
/// directory and can be read.
fn granted_directories() -> Vec<String> {
    let mut paths: Vec<String> = get_directories().into_iter().map(|(_, path)| path).collect();
    let has_others = paths.iter().any(|path| path != "/");
    paths.retain(|path| path != "/" || !has_others && fs::read_dir("/").is_ok());
    paths
}
