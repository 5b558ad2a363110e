//! The documentation of plugins as resources.

use rmcp::model::{Resource, ResourceContents};

use crate::principal::Principal;
use toolwit::Scope;
use toolwit::registry::Package;

/// The beginning of the URI of a plugin's documentation.
const URI_PREFIX: &str = "toolwit://plugin/";

/// The documentation of the plugins for a principal. It has the name, description and input schema of each tool that the
/// principal may use. Plugins without such tools are left out.
pub(crate) struct PluginDocs<'p>(pub(crate) &'p Principal);

impl PluginDocs<'_> {
    /// Returns the entries of the list of resources, in the order of the plugins.
    pub(crate) fn resources(&self) -> Vec<Resource> {
        let registry = self.0.host().registry();
        let packages = registry.packages().iter().filter(|package| self.is_visible(package));
        let entries = packages.map(|package| {
            Resource::new(uri(package), package.name.clone())
                .with_description(format!("Documentation of the plugin {}", package.name))
                .with_mime_type("text/markdown")
        });
        entries.collect()
    }

    /// Returns the documentation at a URI. `None` if the plugin does not exist, or the principal may not use any of its
    /// tools.
    pub(crate) fn read(&self, uri: &str) -> Option<ResourceContents> {
        let registry = self.0.host().registry();
        let package = registry.package(uri.strip_prefix(URI_PREFIX)?)?;
        self.is_visible(package)
            .then(|| ResourceContents::text(self.page(package), uri).with_mime_type("text/markdown"))
    }

    fn is_visible(&self, package: &Package) -> bool {
        package.plugin().is_some_and(|plugin| {
            let tools = self.0.host().registry().tools_of(plugin, &Scope::new());
            tools.iter().any(|tool| self.0.may_use(tool.definition().id.as_str()))
        })
    }

    fn page(&self, package: &Package) -> String {
        let mut page = format!("# {}\n", package.name);
        let Some(plugin) = package.plugin() else { return page };
        for tool in self.0.host().registry().tools_of(plugin, &Scope::new()) {
            let definition = tool.definition();
            if !self.0.may_use(definition.id.as_str()) {
                continue;
            }
            let schema = serde_json::to_string_pretty(&definition.input_schema).unwrap_or_default();
            page.push_str(&format!(
                "\n## {}\n\n{}\n\n```json\n{schema}\n```\n",
                definition.name(),
                definition.description
            ));
        }
        page
    }
}

fn uri(package: &Package) -> String {
    format!("{URI_PREFIX}{}", package.name)
}
