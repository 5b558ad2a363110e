//! A caller and its rights.

use std::fmt;
use std::sync::Arc;

use toolwit::agent::LoopLimits;
use toolwit::tool::{ApprovalMode, ApprovalPolicy, Approvals, PrincipalName};
use toolwit::{ConversationBuilder, ToolContext, Toolwit};

use crate::approval::ClientApprover;
use crate::tasks::TaskSupport;

/// A caller of the server, with the tools that it may use. All requests without a token, over standard input or HTTP,
/// have the same principal. Each bearer token and each subject of a token rule has its own principal.
#[derive(Clone)]
pub struct Principal {
    name: Arc<str>,
    /// For a subject of a token rule, the name of the rule's principal: the subjects of a rule share their tools, limits
    /// and counters. For any other principal, its own name.
    group: Arc<str>,
    host: Toolwit,
    context: ToolContext,
    tool_filter: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    approvals: ApprovalPolicy,
    task_support: Arc<dyn Fn(&str) -> TaskSupport + Send + Sync>,
}

impl Principal {
    /// Creates a principal that may use all tools of a host.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, host: Toolwit) -> Self {
        let name = name.into();
        Self {
            context: ToolContext::new().with_extension(PrincipalName::new(name.clone())),
            group: name.clone(),
            name,
            host,
            tool_filter: Arc::new(|_| true),
            approvals: ApprovalPolicy::of_mode(ApprovalMode::Never),
            task_support: Arc::new(|_| TaskSupport::default()),
        }
    }

    /// Restricts the principal to the tools whose id `may_use` accepts; see
    /// [`Toolwit::conversation_among`](toolwit::Toolwit::conversation_among).
    #[must_use]
    pub fn restricted_to(mut self, may_use: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.tool_filter = Arc::new(may_use);
        self
    }

    /// Sets the context of the principal's calls, such as a tenant. A client cannot change these values.
    #[must_use]
    pub fn with_context(mut self, context: ToolContext) -> Self {
        self.context = context.with_extension(PrincipalName::new(self.name.clone()));
        self
    }

    /// Sets which calls need an approval. By default, no call needs one, as in a
    /// [`Conversation`](toolwit::Conversation).
    ///
    /// The server asks the user of the client: with an elicitation request up to revision 2025-11-25, with a result that
    /// requires input from 2026-07-28 on. If the client does not declare elicitation, a call that needs an approval does
    /// not run. The answer is as trustworthy as the client, which could answer without asking its user. A call that
    /// [`ApprovalMode::Deny`] refuses cannot be approved.
    #[must_use]
    pub fn with_approvals(mut self, policy: ApprovalPolicy) -> Self {
        self.approvals = policy;
        self
    }

    /// Sets which calls become tasks, by the id of the tool. The default is [`TaskSupport::WhenLong`].
    #[must_use]
    pub fn with_task_support(mut self, support: impl Fn(&str) -> TaskSupport + Send + Sync + 'static) -> Self {
        self.task_support = Arc::new(support);
        self
    }

    /// Returns the name of the principal, which is unique in a server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the principal of a token's subject: a copy of `self` with a name that contains the subject.
    pub(crate) fn of_subject(&self, subject: &str) -> Self {
        let name: Arc<str> = format!("{}#{subject}", self.group).into();
        Self {
            context: self.context.clone().with_extension(PrincipalName::new(name.clone())),
            name,
            ..self.clone()
        }
    }

    /// Returns the name of the principal's group, which all subjects of a token rule share. The group of any other
    /// principal has the principal's name.
    pub(crate) fn group(&self) -> &str {
        &self.group
    }

    /// Returns the host whose tools the principal uses.
    #[must_use]
    pub fn host(&self) -> &Toolwit {
        &self.host
    }

    /// Returns whether the principal may use the tool with this id.
    #[must_use]
    pub fn may_use(&self, tool_id: &str) -> bool {
        (self.tool_filter)(tool_id)
    }

    /// Returns the context of the principal's calls.
    #[must_use]
    pub fn context(&self) -> &ToolContext {
        &self.context
    }

    /// Returns which calls of the tool with this id become tasks.
    pub(crate) fn task_support(&self, tool_id: &str) -> TaskSupport {
        (self.task_support)(tool_id)
    }

    /// Returns the policy that decides which calls of the principal need an approval.
    pub(crate) fn approvals(&self) -> &ApprovalPolicy {
        &self.approvals
    }

    /// Returns the builder of a conversation with the principal's tools. The conversation never hides tools and never
    /// cuts results, since the limits of the client are unknown.
    pub(crate) fn conversation(&self) -> ConversationBuilder {
        let tool_filter = self.tool_filter.clone();
        let limits = LoopLimits {
            result_bytes_max: usize::MAX,
            tools_max: usize::MAX,
            tools_warn: usize::MAX,
            ..LoopLimits::default()
        };
        self.host
            .conversation_among(move |id| tool_filter(id))
            .context(self.context.clone())
            .limits(limits)
            .approvals(Approvals::new(self.approvals.clone()).with_approver(ClientApprover))
    }

    /// Returns the function that decides by the id of a tool whether the principal may use the tool.
    pub(crate) fn tool_filter(&self) -> Arc<dyn Fn(&str) -> bool + Send + Sync> {
        self.tool_filter.clone()
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principal")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
