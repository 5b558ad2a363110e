//! Builds a host from the settings of its builder.

use std::sync::Arc;

use super::ToolwitBuilder;
use crate::host::Toolwit;
use crate::host::discovery::{discover, discover_in_background};
use crate::host::groups_file::read_groups;
use crate::host::interceptors::{Interceptors, select_by_id};
use crate::host::long_running::warn_about_unknown_tools;
use crate::host::plugin_source::PluginSource;
use toolwit_core::Error;
use toolwit_core::limits::TOOLS_VISIBLE_MAX;
use toolwit_registry::store::MemoryStore;
#[cfg(feature = "sqlite")]
use toolwit_registry::store::SqliteStore;
use toolwit_registry::{DynamicDiscovery, LiveRegistry, MissingPath};
use toolwit_sandbox::{Runtime, Scope};

impl ToolwitBuilder {
    /// Opens the configured metadata database. The host uses it as the store of package metadata and of key-value data.
    #[cfg(feature = "sqlite")]
    async fn open_store_file(mut self) -> Result<Self, Error> {
        let Some(file) = self.store_file.take() else {
            return Ok(self);
        };
        match SqliteStore::open_file(&file.path).await {
            Ok(store) => Ok(self.protect(&file.path).store(store.clone()).keyvalue(store)),
            Err(error) if file.is_required => Err(error),
            Err(error) => {
                tracing::warn!(%error, "continuing without the metadata database");
                Ok(self)
            }
        }
    }

    /// Builds the host, and scans the plugin directories. Nothing is compiled and no guest code runs, except for the
    /// discovery of dynamic tools; see [`ToolwitBuilder::dynamic_discovery`].
    ///
    /// # Errors
    /// [`ErrorKind::Io`](toolwit_core::ErrorKind::Io) if a directory or a file of tool groups cannot be read,
    /// [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) for limits that must not be zero, for
    /// grants that cannot be read or are invalid, for secrets of the application, a store or certificates that cannot
    /// be used, for invalid tool groups, and for interceptors that are not installed; the error of a broken interceptor;
    /// and the errors of [`Toolwit::discover_dynamic_tools`].
    pub async fn build(self) -> Result<Toolwit, Error> {
        #[cfg(feature = "sqlite")]
        let builder = self.open_store_file().await?;
        #[cfg(not(feature = "sqlite"))]
        let builder = self;
        builder.build_with_store().await
    }

    /// Builds the host after [`Self::build`] has opened the metadata database.
    async fn build_with_store(mut self) -> Result<Toolwit, Error> {
        self.runtime.plugin_paths.extend(self.plugin_paths.iter().cloned());
        let long_running = self.runtime.long_running.clone();
        let runtime = Runtime::new(self.runtime)?;
        let store = self.store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let missing_path = if self.watch.is_some() {
            MissingPath::Empty
        } else {
            MissingPath::Error
        };
        let registry =
            LiveRegistry::open(&runtime, &self.plugin_paths, missing_path, store, self.embedding_model).await?;
        let plugins = PluginSource::new(registry.clone(), Scope::new(), Arc::new(|_: &str| true));
        let mut groups = self.tool_groups.with_source(plugins);
        for path in &self.groups_files {
            groups = groups.with_config(read_groups(path)?)?;
        }
        for config in self.group_configs {
            groups = groups.with_config(config)?;
        }
        let snapshot = registry.current();
        let package_names = snapshot.packages().iter().map(|package| package.name.as_str());
        runtime.warn_about_unknown_grants(package_names);
        let discovery = match self.dynamic_discovery {
            DynamicDiscovery::Never => None,
            _ if self.has_background_discovery => discover_in_background(&registry),
            _ => discover(&registry).await?,
        };
        warn_about_unknown_tools(&registry.current(), &long_running);
        // The tools of shared sources and undiscovered dynamic tools are not known yet.
        let snapshot = registry.current();
        let has_undiscovered = snapshot
            .packages()
            .iter()
            .any(|package| package.discovery_error().is_some());
        let mut plugin_interceptors = self.plugin_interceptors;
        select_by_id(
            &mut plugin_interceptors,
            &snapshot,
            &self.native_tools,
            !self.shared_sources.is_empty() || has_undiscovered,
        )?;
        let interceptors = Interceptors::new(self.application_interceptors, &plugin_interceptors, &snapshot)?;
        let watch = self.watch.map(|mut options| {
            if self.dynamic_discovery == DynamicDiscovery::Never {
                options.dynamic_discovery = DynamicDiscovery::Never;
            }
            Arc::new(registry.watch(options))
        });
        Ok(Toolwit {
            runtime,
            registry,
            exposure: self.exposure,
            tools_visible_max: self.tools_visible_max.unwrap_or(TOOLS_VISIBLE_MAX),
            native_tools: self.native_tools.into(),
            interceptors,
            sources: self.shared_sources.into(),
            groups,
            _watch: watch,
            _discovery: discovery.map(Arc::new),
        })
    }
}
