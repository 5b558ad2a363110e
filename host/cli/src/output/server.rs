//! MCP servers and their tools, for `list`.

use serde::Serialize;

use crate::hint::with_fixing_hint;
use crate::output::page::{BAD, FAINT, NAME, Page, TITLE, WARN, first_sentence};
use toolwit::agent::ToolSource;
use toolwit::mcp::{McpServer, ServerEndpoint};
use toolwit::tool::{ToolContext, ToolDefinition};

/// The document `{"name", "endpoint", "status", "revision"?, "reason"?, "suggestion"?, "tools", "withheld"}`.
#[derive(Debug, Serialize)]
pub(crate) struct ServerDocument {
    name: String,
    /// The program that is started, or the URL that is contacted.
    endpoint: String,
    status: Status,
    /// The revision of MCP that the server speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    /// The reason why the server cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
    tools: Vec<ToolDefinition>,
    /// The tools of the server that the client withholds, with the reasons.
    withheld: Vec<WithheldToolDocument>,
}

#[derive(Debug, Serialize)]
struct WithheldToolDocument {
    name: String,
    reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Status {
    NotContacted,
    Ready,
    Unreachable,
    /// The configuration of the server is not valid.
    Invalid,
}

impl ServerDocument {
    /// Describes a server by its configuration, without contacting the server.
    pub(crate) fn not_contacted(server: &McpServer) -> Self {
        let endpoint = match &server.config().endpoint {
            ServerEndpoint::Process(process) => format!("process {}", process.program),
            ServerEndpoint::Http(http) => http.url.to_string(),
            other => format!("{other:?}"),
        };
        Self {
            name: server.name().to_owned(),
            endpoint,
            status: Status::NotContacted,
            revision: None,
            reason: None,
            suggestion: None,
            tools: Vec::new(),
            withheld: Vec::new(),
        }
    }

    /// Describes a server whose configuration is not valid.
    pub(crate) fn invalid(name: &str, error: &toolwit::Error) -> Self {
        Self {
            name: name.to_owned(),
            endpoint: String::new(),
            status: Status::Invalid,
            revision: None,
            reason: Some(error.message.clone()),
            suggestion: error.suggestion.clone(),
            tools: Vec::new(),
            withheld: Vec::new(),
        }
    }

    /// Contacts a server and describes it with its tools.
    pub(crate) async fn contact(server: &McpServer) -> Self {
        let mut document = Self::not_contacted(server);
        let context = ToolContext::new();
        let report_and_tools = async { Ok((server.report(&context).await?, server.tools(&context).await?)) };
        let result: Result<_, toolwit::Error> = report_and_tools.await;
        match result {
            Ok((report, tools)) => {
                document.status = Status::Ready;
                document.revision = Some(report.revision);
                document.tools = tools.iter().map(|tool| tool.definition().clone()).collect();
                let withheld = report.withheld.into_iter();
                document.withheld = withheld
                    .map(|(name, reason)| WithheldToolDocument { name, reason })
                    .collect();
            }
            Err(error) => {
                document.status = Status::Unreachable;
                document.reason = Some(error.message.clone());
                document.suggestion.clone_from(&with_fixing_hint(&error).suggestion);
            }
        }
        document
    }

    /// Writes the server with its tools.
    pub(crate) fn write(&self, page: &mut Page) {
        page.gap()
            .styled(TITLE, &self.name)
            .text("  ")
            .styled(FAINT, &self.endpoint);
        if let Some(revision) = &self.revision {
            page.text("  ").styled(FAINT, format_args!("MCP {revision}"));
        }
        page.end();
        if self.status == Status::NotContacted {
            page.spaces(2).styled(FAINT, "not contacted").end();
        }
        if let Some(reason) = &self.reason {
            let label = match self.status {
                Status::Invalid => "invalid:",
                _ => "unreachable:",
            };
            page.spaces(2).styled(BAD, label).text(" ").text(reason).end();
        }
        if let Some(suggestion) = &self.suggestion {
            page.spaces(2).styled(FAINT, format_args!("hint: {suggestion}")).end();
        }
        let width = self
            .tools
            .iter()
            .map(|tool| tool.name().chars().count())
            .max()
            .unwrap_or(0);
        for tool in &self.tools {
            let name = tool.name();
            page.spaces(2)
                .styled(NAME, name)
                .spaces(width.saturating_sub(name.chars().count()) + 2)
                .text(first_sentence(&tool.description))
                .end();
        }
        for withheld in &self.withheld {
            page.spaces(2)
                .styled(WARN, "withheld:")
                .text(" ")
                .text(format_args!("{}: {}", withheld.name, withheld.reason))
                .end();
        }
    }
}
