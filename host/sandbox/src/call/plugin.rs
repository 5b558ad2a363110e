//! A plugin: its component and compiled code, and the limits and rights of its calls.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::live_calls::LiveCalls;
use super::runtime::Runtime;
use crate::grants::authority::{Authority, AuthorityRequest, ConversationNumber, OpenedRights};
use crate::grants::redact::Redactor;
use crate::grants::{AccessRequest, DeclaredCapabilities, EffectiveRights, Explanation, GrantRules, NoGrantReason};
use crate::inspect::annotations::{Annotations, Requirement};
use crate::inspect::dynamic_tools_state::DynamicToolsState;
use crate::inspect::inspection::Inspection;
use crate::inspect::lazy::LazyInspection;
use crate::inspect::source::ComponentSource;
use crate::link::compile::link_once::{LinkOnce, WaitLimit};
use crate::link::compile::linked_component::LinkedComponent;
use crate::link::compile::load_or_compile::load_or_compile;
use crate::link::compile::status::CompileStatus;
use crate::link::host::host_api::{CallStack, FuelMeter};
use toolwit_core::limits::{CallLimits, LimitOverrides, effective};
use toolwit_core::{Error, ToolContext};

/// A component with a name. Its functions are tools.
///
/// A plugin is created from an inspection of the component, which may come from a cache. The first call compiles the component
/// or loads its code from the code cache; concurrent calls wait for the same attempt. If the attempt fails, all waiting calls
/// receive its error, and the next call tries again.
pub struct Plugin {
    name: Arc<str>,
    inspection: LazyInspection,
    /// The rights of the plugin without any grant.
    no_rights: OnceLock<Arc<OpenedRights>>,
    source: ComponentSource,
    /// The limits that the package of the plugin requests.
    requested_limits: LimitOverrides,
    /// The values that the package of the plugin requires.
    requirements: Vec<Requirement>,
    /// The limits of a call that requests no limits itself and is not long-running.
    default_limits: OnceLock<CallLimits>,
    runtime: Arc<Runtime>,
    /// The compiled component, or the attempt to compile it.
    link_once: Arc<LinkOnce>,
    live_calls: LiveCalls,
}

impl Plugin {
    pub(crate) fn new(
        runtime: &Arc<Runtime>,
        name: &str,
        inspection: LazyInspection,
        source: ComponentSource,
        annotations: &Annotations,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            no_rights: OnceLock::new(),
            inspection,
            source,
            requested_limits: annotations.limits.clone(),
            requirements: annotations.requirements.clone(),
            default_limits: OnceLock::new(),
            runtime: runtime.clone(),
            link_once: Arc::default(),
            live_calls: LiveCalls::new(runtime.engines.limits.calls_per_plugin_max),
        })
    }

    /// Returns a plugin with the same name and component, but with another inspection. Both plugins share the compiled code and
    /// the limit on live calls.
    pub(crate) fn with_inspection(&self, inspection: Inspection) -> Arc<Self> {
        Arc::new(Self {
            name: self.name.clone(),
            no_rights: OnceLock::new(),
            inspection: LazyInspection::from_inspection(inspection),
            source: self.source.clone(),
            requested_limits: self.requested_limits.clone(),
            requirements: self.requirements.clone(),
            default_limits: OnceLock::new(),
            runtime: self.runtime.clone(),
            link_once: self.link_once.clone(),
            live_calls: self.live_calls.clone(),
        })
    }

    /// Returns whether the component has dynamic tools, and whether they have been discovered. Does not parse a cached
    /// inspection.
    #[must_use]
    pub fn dynamic_tools_state(&self) -> DynamicToolsState {
        self.inspection.dynamic_tools_state()
    }

    /// Returns the name of the plugin.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the inspection of the component.
    #[must_use]
    pub fn inspection(&self) -> &Arc<Inspection> {
        self.inspection.get(&self.name)
    }

    /// Returns whether the inspection of the component has been parsed. A cached inspection is parsed when it is first used.
    #[must_use]
    pub fn is_inspection_parsed(&self) -> bool {
        self.inspection.is_parsed()
    }

    /// Returns the SHA-256 of the component, in hex.
    #[must_use]
    pub fn digest(&self) -> &str {
        self.inspection.digest()
    }

    /// Returns the number of the plugin's tools.
    #[must_use]
    pub fn tool_count(&self) -> usize {
        self.inspection.tool_count()
    }

    /// Compiles the component or loads its code from the code cache, so that the first call need not wait. Waits until the
    /// component is ready, and returns the waiting time. [`Plugin::compile_in_background`] does not wait.
    ///
    /// # Errors
    /// - [`ErrorKind::Unsupported`](toolwit_core::ErrorKind::Unsupported) if the compiler refuses the component or exceeds its
    ///   limits, and [`ErrorKind::UnknownImport`](toolwit_core::ErrorKind::UnknownImport) if an import cannot be linked.
    /// - The errors of [`Plugin::read_component`].
    /// - [`ErrorKind::Timeout`](toolwit_core::ErrorKind::Timeout) if compiling takes longer than `load_wall_max`. Compiling
    ///   then continues in the background.
    /// - [`ErrorKind::Internal`](toolwit_core::ErrorKind::Internal) if the engine or the compiler process fails.
    pub async fn compile(&self) -> Result<Duration, Error> {
        let started = Instant::now();
        self.linked_component(&ToolContext::new()).await?;
        Ok(started.elapsed())
    }

    /// Starts to compile the component in the background, unless it is compiled or being compiled. [`Plugin::compile_status`]
    /// reports the progress. A call that begins before the end of the compilation waits for it. Must be called in a Tokio runtime.
    pub fn compile_in_background(&self) {
        self.link_once.start(|| self.link_attempt());
    }

    /// Reads the component and retains it in memory until it is compiled, so that the plugin works even if its file changes in the
    /// meantime. Does nothing if the component is compiled or its machine code is in the code cache, because the file is then not
    /// needed. Blocks while it reads the file.
    ///
    /// All plugins of the process together retain at most 128 MiB. A component that would exceed this limit is not retained, and
    /// its calls fail if its file has changed.
    pub fn retain_component(&self) {
        if self.is_compiled() || self.runtime.engines.has_cached_code(self.inspection()) {
            return;
        }
        let bytes_max = self.runtime.engines.limits.component_bytes_max;
        self.source
            .retain(self.digest(), self.inspection().size_bytes, bytes_max);
    }

    /// Reads the bytes of the component. Blocks.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](toolwit_core::ErrorKind::Io) if the component cannot be read or has changed since it was inspected, and
    /// [`ErrorKind::FileBytes`](toolwit_core::ErrorKind::FileBytes) if it is now larger than `component_bytes_max`.
    pub fn read_component(&self) -> Result<Arc<[u8]>, Error> {
        let bytes_max = self.runtime.engines.limits.component_bytes_max;
        self.source.read(self.digest(), bytes_max)
    }

    /// Returns whether the component is compiled in this process, so that calls need not wait for the compiler.
    #[must_use]
    pub fn is_compiled(&self) -> bool {
        self.link_once.get().is_some()
    }

    /// Returns the compilation status of the component in this process.
    #[must_use]
    pub fn compile_status(&self) -> CompileStatus {
        self.link_once.status()
    }

    /// Returns the capabilities that the imports of the component declare.
    #[must_use]
    pub fn declared_capabilities(&self) -> &DeclaredCapabilities {
        self.inspection.declared_capabilities(&self.name)
    }

    pub(crate) fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// Computes the authority of a call, and checks that every value exists that the package requires.
    pub(crate) async fn authority(
        &self,
        conversation: ConversationNumber,
        context: &ToolContext,
    ) -> Result<Authority, Error> {
        let caller = CallStack::of(context).map(CallStack::caller_rights);
        let request = self.authority_request(conversation, caller);
        let authority = self.runtime.authorities.authorize(request, context).await?;
        authority.require_values(&self.requirements)?;
        Ok(authority)
    }

    /// Refuses a call if one of its grants was removed or changed since the authority of the call was computed.
    pub(super) async fn require_current(&self, authority: &Authority) -> Result<(), Error> {
        self.runtime.authorities.require_current(authority).await
    }

    /// Explains whether the next call in a new conversation is allowed an access, and which rule decides.
    ///
    /// The decision is the same as in a call: it uses the current grants file, record of used grants, granted directories and
    /// secrets. It does not use up grants. Secrets that a conversation provides are assumed to exist.
    ///
    /// If the host freezes the clocks of all plugins, the host decides about clocks and random bytes, not the grants.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`](toolwit_core::ErrorKind::Denied) if the grants file is unreadable or invalid now;
    /// [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) if the secret store is unreadable or invalid, or
    /// has a secret that cannot be used.
    pub async fn explain(&self, request: &AccessRequest<'_>) -> Result<Explanation, Error> {
        Ok(Explanation::new(&self.rights().await?, request))
    }

    /// Returns the rights that the next call in a new conversation has. Does not use up grants.
    ///
    /// # Errors
    /// The errors of [`Plugin::explain`].
    pub async fn rights(&self) -> Result<EffectiveRights, Error> {
        let request = self.authority_request(ConversationNumber::default(), None);
        self.runtime.authorities.preview(request).await
    }

    /// Checks that this host can enforce `rules` before they are granted to the plugin. Each directory must be grantable in
    /// addition to the directories of the current grants, and each secret must exist. Secrets that a conversation provides are not
    /// checked. The outcome is the same for every plugin of the host.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) for a directory that cannot be granted, a secret
    /// that cannot be used or a secret store that cannot be read;
    /// [`ErrorKind::MissingKey`](toolwit_core::ErrorKind::MissingKey) for a secret that does not exist.
    pub async fn check_grant(&self, rules: &GrantRules) -> Result<(), Error> {
        self.runtime.authorities.check(rules.clone()).await
    }

    /// Returns the rights that the next call in a conversation has, without looking up its secrets and variables. Does not use
    /// up grants.
    pub(super) async fn current_rights(
        &self,
        conversation: ConversationNumber,
        caller: Option<&EffectiveRights>,
    ) -> Result<EffectiveRights, Error> {
        let request = self.authority_request(conversation, caller);
        self.runtime.authorities.current_rights(request).await
    }

    /// Returns a redactor for the secrets that are granted to the next call in a conversation. Does not use up grants.
    pub(super) async fn redactor(
        &self,
        conversation: ConversationNumber,
        caller: Option<&EffectiveRights>,
        context: &ToolContext,
    ) -> Result<Redactor, Error> {
        let request = self.authority_request(conversation, caller);
        self.runtime.authorities.redactor(request, context).await
    }

    fn authority_request<'a>(
        &'a self,
        conversation: ConversationNumber,
        caller: Option<&'a EffectiveRights>,
    ) -> AuthorityRequest<'a> {
        let no_rights = || OpenedRights::none(self.declared_capabilities(), NoGrantReason::NotNamed);
        AuthorityRequest {
            plugin: &self.name,
            no_rights: self.no_rights.get_or_init(no_rights),
            digest: self.digest(),
            declared: self.declared_capabilities(),
            conversation,
            caller,
        }
    }

    /// Computes the limits of a call from those of the process, the operator, the package and the call itself.
    ///
    /// # Errors
    /// The errors of [`LimitOverrides::check`].
    pub(super) fn limits_for(&self, context: &ToolContext, is_long_running: bool) -> Result<CallLimits, Error> {
        let requested_by_call = FuelMeter::requested_limits(context);
        if let (None, Some(limits), false) = (&requested_by_call, self.default_limits.get(), is_long_running) {
            return Ok(limits.clone());
        }
        let requested_limits = requested_by_call.clone().unwrap_or_default().or(&self.requested_limits);
        requested_limits.check()?;
        let runtime = &self.runtime;
        if is_long_running {
            let operator_limits = runtime.operator_limits.clone().long_running();
            return Ok(effective(&runtime.engines.limits, &operator_limits, &requested_limits));
        }
        let limits = effective(&runtime.engines.limits, &runtime.operator_limits, &requested_limits);
        Ok(match requested_by_call {
            Some(_) => limits,
            None => self.default_limits.get_or_init(|| limits).clone(),
        })
    }

    /// Returns the compiled component. If the component is not compiled yet, starts to compile it and waits at most
    /// `load_wall_max`.
    pub(super) async fn linked_component(&self, context: &ToolContext) -> Result<Arc<LinkedComponent>, Error> {
        if let Some(component) = self.link_once.get() {
            return Ok(component);
        }
        // Boxed, because this future rarely runs and would enlarge the future of every call.
        Box::pin(self.linked_component_within(context, self.runtime.engines.limits.load_wall_max)).await
    }

    /// Returns the compiled component as [`Plugin::linked_component`] does, but waits at most for the shorter of `wall_max` and
    /// `load_wall_max`. If compiling takes longer, it continues in the background.
    pub(super) async fn linked_component_within(
        &self,
        context: &ToolContext,
        wall_max: Duration,
    ) -> Result<Arc<LinkedComponent>, Error> {
        let wait = WaitLimit {
            wall_max: wall_max.min(self.runtime.engines.limits.load_wall_max),
            cancel: context.cancel_token(),
        };
        let component = self.link_once.get_or_link(|| self.link_attempt(), wait).await;
        component.map_err(|error| error.with_plugin(&*self.name))
    }

    /// Returns the future of one attempt to compile the component or load its code, and to link it.
    fn link_attempt(&self) -> impl Future<Output = Result<Arc<LinkedComponent>, Error>> + Send + 'static {
        let (engines, source) = (self.runtime.engines.clone(), self.source.clone());
        let (inspection, progress) = (self.inspection().clone(), self.link_once.progress().clone());
        load_or_compile(engines, source, inspection, progress)
    }

    /// Plans a spare instance of the component after a call. Does nothing if an instance of the component occupies several slots of
    /// wasmtime's instance pool.
    pub(super) fn plan_spare_instance(self: Arc<Self>, component: &Arc<LinkedComponent>, limits: CallLimits) {
        if self.inspection().footprint.slots() != 1 {
            return;
        }
        if let (Ok(runtime), Some(plan)) = (Handle::try_current(), self.runtime.spares.record_call(component)) {
            runtime.spawn(async move {
                plan.wait_until_idle().await;
                let _ticking = self.runtime.engines.ticker.keep_running();
                plan.create(limits, &self.runtime.network).await;
            });
        }
    }

    /// Returns the live calls of the plugin.
    pub(super) fn live_calls(&self) -> &LiveCalls {
        &self.live_calls
    }
}
