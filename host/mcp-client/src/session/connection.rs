//! A connection to a server after its handshake.

use rmcp::model::{ProtocolVersion, ServerCapabilities, ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, RoleClient, RunningService};
use tokio::task::JoinSet;

use super::handler::Handler;
use super::notifications::Notifications;
use crate::transport::Diagnostics;
use crate::value::Redaction;

/// A connection to a server. Dropping it ends the connection, and the process of the server if there is one.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Handler>,
    pub(super) notifications: Notifications,
    pub(super) diagnostics: Diagnostics,
    /// The name of the server.
    pub(super) server: String,
    redaction: Redaction,
    revision: ProtocolVersion,
    capabilities: ServerCapabilities,
    /// The task that listens to changes of the tools, if the revision reports them to subscribers only. Dropping the set
    /// aborts the task.
    _listener: JoinSet<()>,
}

impl Connection {
    pub(super) fn new(
        server: String,
        service: RunningService<RoleClient, Handler>,
        diagnostics: Diagnostics,
        redaction: Redaction,
    ) -> Self {
        let notifications = service.service().notifications.clone();
        let info = service.peer().peer_info();
        let revision = info
            .as_ref()
            .map(|info| info.protocol_version.clone())
            .unwrap_or_default();
        let capabilities = info.map(|info| info.capabilities.clone()).unwrap_or_default();
        let mut listener = JoinSet::new();
        let reports_changes = capabilities
            .tools
            .as_ref()
            .is_some_and(|tools| tools.list_changed == Some(true));
        if reports_changes && revision >= ProtocolVersion::V_2026_07_28 {
            listener.spawn(listen_for_tool_changes(service.peer().clone(), notifications.clone()));
        }
        Self {
            service,
            notifications,
            diagnostics,
            server,
            redaction,
            revision,
            capabilities,
            _listener: listener,
        }
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    pub(super) fn handler(&self) -> &Handler {
        self.service.service()
    }

    /// Returns whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.service.is_closed() || self.peer().is_transport_closed()
    }

    /// Returns the redaction of the secrets that the server received.
    pub(crate) fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    /// Returns the revision of the protocol.
    pub(crate) fn revision(&self) -> &str {
        self.revision.as_str()
    }

    /// Returns whether the tools of the server can be listed.
    pub(crate) fn has_tools(&self) -> bool {
        // Some servers have tools, but declare no capabilities.
        self.capabilities.tools.is_some() || (!self.has_resources() && !self.has_prompts())
    }

    /// Returns whether the server has resources.
    pub(crate) fn has_resources(&self) -> bool {
        self.capabilities.resources.is_some()
    }

    /// Returns whether the server has prompts.
    pub(crate) fn has_prompts(&self) -> bool {
        self.capabilities.prompts.is_some()
    }

    /// Returns whether the server reports changes of its tools.
    pub(super) fn reports_changes(&self) -> bool {
        self.capabilities
            .tools
            .as_ref()
            .is_some_and(|tools| tools.list_changed == Some(true))
    }

    /// Returns whether the list of tools must be read again, because the server has reported a change since the list
    /// was last requested, or because that request failed.
    pub(crate) fn have_tools_changed(&self) -> bool {
        self.notifications.have_tools_changed()
    }
}

/// Subscribes to changes of the list of tools, and records them until the connection ends.
async fn listen_for_tool_changes(peer: Peer<RoleClient>, notifications: Notifications) {
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let mut subscription = match peer.listen(filter).await {
        Ok(subscription) => subscription,
        Err(error) => {
            tracing::debug!(%error, "changes of the tools of an MCP server are not reported");
            return;
        }
    };
    while let Ok(Some(notification)) = subscription.next().await {
        if matches!(notification, ServerNotification::ToolListChangedNotification(_)) {
            notifications.mark_tools_changed();
        }
    }
}
