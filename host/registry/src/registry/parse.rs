//! Parsing the cached inspections of all plugins.

use std::sync::Arc;
use std::thread;

use super::Registry;
use toolwit_sandbox::Plugin;

/// The minimum number of plugins for a thread. Starting one takes about as long as parsing the inspection of one plugin.
const PLUGINS_MIN: usize = 6;

impl Registry {
    /// Parses the cached inspections of all plugins, on several threads if there are many. Each is parsed once, when it is first used: this
    /// prepares the use of all of them.
    pub fn parse_inspections(&self) {
        let unparsed: Vec<_> = self.plugins().filter(|plugin| !plugin.is_parsed()).collect();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(unparsed.len() / PLUGINS_MIN);
        if threads < 2 {
            return;
        }
        let parse = |plugins: &[&Arc<Plugin>]| {
            for plugin in plugins {
                let _parsed = plugin.inspection();
            }
        };
        let mut parts = unparsed.chunks(unparsed.len().div_ceil(threads));
        let own = parts.next().unwrap_or_default();
        thread::scope(|scope| {
            for part in parts {
                // Without another thread, the plugins are parsed when they are used.
                drop(thread::Builder::new().spawn_scoped(scope, move || parse(part)));
            }
            parse(own);
        });
    }
}
