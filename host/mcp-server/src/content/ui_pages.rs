//! The user interfaces of plugins as resources, for clients of the extension MCP Apps (SEP-1865).

use rmcp::RoleServer;
use rmcp::model::{MetaObject, Resource, ResourceContents, Tool};
use rmcp::service::RequestContext;
use serde_json::json;

use crate::principal::Principal;
use toolwit::registry::Package;
use toolwit::{Scope, ToolDefinition};

/// The beginning of the URI of a user interface. The name of the plugin, a slash and the name of the page follow.
const URI_PREFIX: &str = "ui://";

/// The metadata key, in the list entry of a tool, of the link to the tool's user interface.
const META_KEY: &str = "ui";

/// The media type of a user interface.
const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// The protocol extension that a client declares if it can show user interfaces.
const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// Returns whether the client of a request can show user interfaces of [`MIME_TYPE`]. A client that declares the
/// extension without media types can show all user interfaces.
pub(crate) fn supports_ui(request: &RequestContext<RoleServer>) -> bool {
    let capabilities = request.client_capabilities().unwrap_or_default();
    let Some(settings) = capabilities
        .extensions
        .as_ref()
        .and_then(|extensions| extensions.get(EXTENSION))
    else {
        return false;
    };
    match settings.get("mimeTypes").and_then(|types| types.as_array()) {
        Some(types) => types.iter().any(|mime_type| mime_type == MIME_TYPE),
        None => true,
    }
}

/// Removes the link to a user interface from the list entry of a tool.
pub(crate) fn without_ui(mut tool: Tool) -> Tool {
    if let Some(meta) = &mut tool.meta {
        meta.0.remove(META_KEY);
    }
    tool.meta = tool.meta.filter(|meta| !meta.0.is_empty());
    tool
}

/// The user interfaces of the tools that a principal may use.
///
/// A user interface is an HTML page, which the client shows in its own sandbox. The pages declare no network domains, so
/// they can reach only the tools of this server, through the client.
pub(crate) struct UiPages<'p>(pub(crate) &'p Principal);

impl UiPages<'_> {
    /// Returns the entries of the list of resources, in the order of the plugins.
    pub(crate) fn resources(&self) -> Vec<Resource> {
        let registry = self.0.host().registry();
        let entries = registry.packages().iter().flat_map(|package| {
            let names = self.page_names(package).into_iter();
            names.map(|name| {
                Resource::new(uri(&package.name, &name), name)
                    .with_description(format!("User interface of the plugin {}", package.name))
                    .with_mime_type(MIME_TYPE)
            })
        });
        entries.collect()
    }

    /// Reads the user interface at a URI. `None` if the user interface does not exist, or the principal may not use any
    /// tool that has this user interface. Blocks the thread.
    ///
    /// # Errors
    /// The reason why the document cannot be read, for the log of the server.
    pub(crate) fn read(&self, uri: &str) -> Option<Result<ResourceContents, String>> {
        let (plugin, name) = uri.strip_prefix(URI_PREFIX)?.split_once('/')?;
        let registry = self.0.host().registry();
        let package = registry.package(plugin)?;
        self.page_names(package).iter().find(|visible| *visible == name)?;
        let document = package.read_ui_page(name).transpose()?;
        let contents = document.map(|document| ResourceContents::text(document, uri).with_mime_type(MIME_TYPE));
        Some(contents.map_err(|error| error.to_string()))
    }

    /// Adds the link to a user interface to the list entry of a tool, if the manifest names a user interface for the tool.
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
        meta.0.insert(META_KEY.to_owned(), link);
        tool.with_meta(meta)
    }

    /// Returns the names of the user interfaces of the tools of a package that the principal may use.
    fn page_names(&self, package: &Package) -> Vec<String> {
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
