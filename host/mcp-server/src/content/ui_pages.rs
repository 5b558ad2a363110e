//! The user interfaces of plugins as resources, for clients of the extension MCP Apps (SEP-1865).

use rmcp::RoleServer;
use rmcp::model::{MetaObject, Resource, ResourceContents, Tool};
use rmcp::service::RequestContext;
use serde_json::json;

use crate::principal::Principal;
use toolwit::registry::Package;
use toolwit::{Scope, ToolDefinition};

/// The beginning of the URI of a user interface. The names of its plugin and of its document follow.
const URI_PREFIX: &str = "ui://";

/// The metadata key of the link to a user interface in the entry of a tool.
const META: &str = "ui";

/// The media type of a user interface.
const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// The extension that a client declares to show user interfaces.
const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// Returns whether the client of a request can show user interfaces of [`MIME_TYPE`]. A client that declares the
/// extension without media types can show all of them. For other clients, the lists of tools and resources do not
/// mention them.
pub(crate) fn supports_ui(request: &RequestContext<RoleServer>) -> bool {
    let capabilities = request.client_capabilities().unwrap_or_default();
    let Some(settings) = capabilities.extensions.as_ref().and_then(|all| all.get(EXTENSION)) else {
        return false;
    };
    match settings.get("mimeTypes").and_then(|types| types.as_array()) {
        Some(types) => types.iter().any(|shown| shown == MIME_TYPE),
        None => true,
    }
}

/// Removes the link to a user interface from the entry of a tool.
pub(crate) fn without_ui(mut tool: Tool) -> Tool {
    if let Some(meta) = &mut tool.meta {
        meta.0.remove(META);
    }
    tool.meta = tool.meta.filter(|meta| !meta.0.is_empty());
    tool
}

/// The user interfaces of the tools that a principal may use.
///
/// A client shows them in a sandbox of its own. They declare no network domains: they can reach only the tools
/// of this server, through the client.
pub(crate) struct UiPages<'p>(pub(crate) &'p Principal);

impl UiPages<'_> {
    /// Returns the entries of the list of resources, in the order of the plugins.
    pub(crate) fn resources(&self) -> Vec<Resource> {
        let registry = self.0.host().registry();
        let entries = registry.packages().iter().flat_map(|package| {
            let names = self.names(package).into_iter();
            names.map(|name| {
                Resource::new(uri(&package.name, &name), name)
                    .with_description(format!("User interface of the plugin {}", package.name))
                    .with_mime_type(MIME_TYPE)
            })
        });
        entries.collect()
    }

    /// Reads the user interface at a URI. `None` if it does not exist, or the principal may not use any of its tools.
    /// Blocks the thread.
    ///
    /// # Errors
    /// The reason why the document cannot be read, for the log of the server.
    pub(crate) fn read(&self, uri: &str) -> Option<Result<ResourceContents, String>> {
        let (plugin, name) = uri.strip_prefix(URI_PREFIX)?.split_once('/')?;
        let registry = self.0.host().registry();
        let package = registry.package(plugin)?;
        self.names(package).iter().find(|usable| *usable == name)?;
        let document = package.read_ui_page(name).transpose()?;
        let contents = document.map(|document| ResourceContents::text(document, uri).with_mime_type(MIME_TYPE));
        Some(contents.map_err(|error| error.to_string()))
    }

    /// Adds a link to the entry of a tool, if the manifest names a user interface that shows the results of the tool.
    pub(crate) fn link(&self, tool: Tool, definition: &ToolDefinition) -> Tool {
        let registry = self.0.host().registry();
        let manifest = registry
            .package(definition.id.owner())
            .and_then(|package| package.manifest.clone());
        let settings = manifest
            .as_ref()
            .and_then(|manifest| manifest.tool(definition.id.as_str(), definition.name()));
        let Some(name) = settings.and_then(|settings| settings.ui.as_deref()) else {
            return tool;
        };
        let mut meta = MetaObject::new();
        let link = json!({"resourceUri": uri(definition.id.owner(), name)});
        meta.0.insert(META.to_owned(), link);
        tool.with_meta(meta)
    }

    /// Returns the names of the user interfaces of a package that belong to tools which the principal may use.
    fn names(&self, package: &Package) -> Vec<String> {
        let (Some(plugin), Some(manifest)) = (package.plugin(), &package.manifest) else {
            return Vec::new();
        };
        if manifest.ui_pages().next().is_none() {
            return Vec::new();
        }
        let tools = self.0.host().registry().tools_of(plugin, &Scope::new());
        let usable = tools
            .iter()
            .map(|tool| tool.definition())
            .filter(|definition| self.0.may_use(definition.id.as_str()));
        let settings = usable.filter_map(|definition| manifest.tool(definition.id.as_str(), definition.name()));
        let mut names: Vec<_> = settings.filter_map(|settings| settings.ui.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn uri(plugin: &str, name: &str) -> String {
    format!("{URI_PREFIX}{plugin}/{name}")
}
