//! Parsing the cached inspections of all plugins.

use std::sync::Arc;
use std::thread;

use super::Registry;
use toolwit_sandbox::Plugin;

/// The minimum number of plugins that a thread parses. Starting a thread takes about as long as parsing one inspection.
const PLUGINS_PER_THREAD_MIN: usize = 6;

impl Registry {
    /// Parses the cached inspections of all plugins on several threads. An inspection that is not parsed here is
    /// parsed when it is first used. Does nothing if there are too few plugins for several threads.
    pub fn parse_inspections(&self) {
        let unparsed: Vec<_> = self.plugins().filter(|plugin| !plugin.is_inspection_parsed()).collect();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(unparsed.len() / PLUGINS_PER_THREAD_MIN);
        if threads < 2 {
            return;
        }
        let parse = |plugins: &[&Arc<Plugin>]| {
            for plugin in plugins {
                // The first call parses the inspection. The plugin keeps the result.
                let _inspection = plugin.inspection();
            }
        };
        let mut chunks = unparsed.chunks(unparsed.len().div_ceil(threads));
        let first_chunk = chunks.next().unwrap_or_default();
        thread::scope(|scope| {
            for chunk in chunks {
                // If the thread cannot be started, the inspections of its plugins are parsed when they are first used.
                drop(thread::Builder::new().spawn_scoped(scope, move || parse(chunk)));
            }
            parse(first_chunk);
        });
    }
}
