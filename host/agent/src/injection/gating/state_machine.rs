//! The strategy that permits the calls of a tool in some states only.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use crate::injection::strategy::{CallGate, Injection, InjectionStrategy};
use crate::injection::view::{CallLog, ConversationView, InjectionContext};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{NamedTool, Tool, ToolId, ToolSelector, ToolSet, tool_identities};

/// A type whose values are the states of a [`StateMachine`], usually an enum or a string. Every type that meets the
/// requirements implements it.
pub trait MachineState: Clone + PartialEq + Debug + Send + Sync + 'static {}

impl<S: Clone + PartialEq + Debug + Send + Sync + 'static> MachineState for S {}

/// A state machine over tools: each state has its tools, and a successful call can lead to another state.
///
/// The tools that [`tool`](StateMachineBuilder::tool) and [`global_tool`](StateMachineBuilder::global_tool) add are declared from
/// the start. A call in the wrong state does not run. It returns the current state and the tools that can be called in it. The
/// state is computed from the call log, so it is the same after a resume, in a replay and in a fork. A tool that was added to
/// no state can be called in every state.
///
/// Tools are matched by identity, so a tool keeps its states behind a facade and under another name. The states of a method
/// apply to this method of every entity. The states of a tool do not apply to the methods of the entities that the tool returns.
///
/// ```
/// use std::sync::Arc;
///
/// use toolwit_agent::injection::StateMachine;
/// use toolwit_core::{NativeTool, NoArguments, Tool};
///
/// #[derive(Clone, Debug, PartialEq)]
/// enum Order { Draft, Confirmed }
///
/// # fn tool(name: &str) -> Result<Arc<dyn Tool>, toolwit_core::Error> {
/// #     Ok(Arc::new(NativeTool::typed(name, "", |_: NoArguments, _| async { Ok::<_, String>("done") })?))
/// # }
/// let order = StateMachine::builder()
///     .initial(Order::Draft)
///     .in_state(Order::Draft)
///     .tool(tool("add_item")?)
///     .tool(tool("confirm")?).transitions_to(Order::Confirmed)
///     .in_state(Order::Confirmed)
///     .tool(tool("ship")?)
///     .global_tool(tool("status")?)
///     .build()?;
/// let resumed = order.clone().with_initial_state(Order::Confirmed);
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone)]
pub struct StateMachine<S> {
    /// The state before the first call.
    initial: S,
    /// Whether [`with_initial_state`](Self::with_initial_state) replaced the initial state of the builder.
    is_initial_replaced: bool,
    /// The tools that [`StateMachineBuilder::tool`] and [`StateMachineBuilder::global_tool`] added.
    tools: Vec<Arc<dyn Tool>>,
    /// The tools of all states.
    state_tools: Vec<StateTool<S>>,
    /// Positions in `state_tools`, by tool.
    positions: HashMap<ToolId, Vec<usize>>,
    /// The ids of the tools that can be called in every state.
    global_tools: HashSet<ToolId>,
    /// The tools that the conversation must have, unless the selector is late.
    referenced_tools: Vec<ToolSelector>,
    /// The state that was computed last. The next computation continues from it, so that it does not evaluate the full call log.
    /// Clones of the machine share it.
    cached_state: Arc<Mutex<Option<CachedState<S>>>>,
}

/// A tool in a state.
#[derive(Clone)]
struct StateTool<S> {
    state: S,
    tool: ToolId,
    /// The state to which a successful call leads; `None` if the state does not change.
    next: Option<S>,
}

/// The state after the first calls of a log.
struct CachedState<S> {
    state: S,
    /// The number of these calls, at least 1.
    call_count: usize,
    /// The [stamp](CallLog::stamp) of the last of these calls. It identifies the log up to this call.
    stamp: u64,
}

impl<S: MachineState> StateMachine<S> {
    /// Starts building a machine.
    pub fn builder() -> StateMachineBuilder<S> {
        StateMachineBuilder {
            initial: None,
            selected_state: None,
            tools: Vec::new(),
            state_tools: Vec::new(),
            global_tools: HashSet::new(),
            referenced_tools: Vec::new(),
            setter_error: None,
        }
    }

    /// Returns the machine with another initial state. A conversation that continues a history without its events needs
    /// this setting: otherwise, the conversation cannot be built, because the machine would start in the initial state of the
    /// builder again.
    #[must_use]
    pub fn with_initial_state(mut self, state: S) -> Self {
        self.initial = state;
        self.cached_state = Arc::default();
        self.is_initial_replaced = true;
        self
    }

    /// Returns the tools that were added to the machine, each once. The conversation must have them.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut visited_ids = HashSet::new();
        let tools = self.tools.iter();
        tools
            .filter(|tool| visited_ids.insert(&tool.definition().id))
            .cloned()
            .collect()
    }

    /// Returns the state after these calls.
    #[must_use]
    pub fn state_after(&self, calls: &CallLog) -> S {
        let mut cached_state = self.cached_state.lock().unwrap_or_else(PoisonError::into_inner);
        let usable_state = cached_state
            .take()
            .filter(|cached| calls.stamp(cached.call_count - 1) == Some(cached.stamp));
        let (mut state, cached_count) =
            usable_state.map_or((self.initial.clone(), 0), |cached| (cached.state, cached.call_count));
        for call in calls.all()[cached_count..].iter().filter(|call| !call.is_error) {
            let state_tool = self.state_tool_in(&state, &call.identities);
            if let Some(next) = state_tool.and_then(|state_tool| state_tool.next.clone()) {
                state = next;
            }
        }
        let count = calls.all().len();
        *cached_state = count
            .checked_sub(1)
            .and_then(|last| calls.stamp(last))
            .map(|stamp| CachedState {
                state: state.clone(),
                call_count: count,
                stamp,
            });
        state
    }

    /// Returns the entries of the tool with these identities in `state_tools`, one for each of its states.
    fn state_tools_of(&self, identities: &[ToolId]) -> impl Iterator<Item = &StateTool<S>> {
        let positions = identities.iter().filter_map(|id| self.positions.get(id)).flatten();
        positions.map(|&position| &self.state_tools[position])
    }

    /// Returns the entry of the tool with these identities in a state, or `None` if the tool is not in the state.
    fn state_tool_in(&self, state: &S, identities: &[ToolId]) -> Option<&StateTool<S>> {
        self.state_tools_of(identities)
            .find(|state_tool| state_tool.state == *state)
    }

    /// Returns the text for the model after a call of a tool that is not in the current state.
    fn guidance_for(&self, tool: &NamedTool, state: &S, tools: &ToolSet) -> String {
        let ids = tool_identities(&tool.tool);
        let mut states: Vec<_> = self
            .state_tools_of(&ids)
            .map(|state_tool| quoted(&state_tool.state))
            .collect();
        states.dedup();
        let tools_of_state = self.state_tools.iter().filter(|state_tool| state_tool.state == *state);
        let callable_names: Vec<_> = tools_of_state
            .filter_map(|state_tool| {
                let mut ids = tools.ids_with_identity(&state_tool.tool);
                let name = &ids.find_map(|id| tools.by_id(id))?.name;
                Some(match &state_tool.next {
                    Some(next) => format!("`{name}` (leads to {})", quoted(next)),
                    None => format!("`{name}`"),
                })
            })
            .collect();
        let alternatives = if callable_names.is_empty() {
            "the conversation has no tool of this state".to_owned()
        } else {
            format!("tools that can be called now: {}", callable_names.join(", "))
        };
        format!(
            "`{}` can be called in {}, and the state is {}; {alternatives}",
            tool.name,
            states.join(" or "),
            quoted(state)
        )
    }
}

impl<S: MachineState> InjectionStrategy for StateMachine<S> {
    fn evaluate(&self, _context: &InjectionContext<'_>) -> Injection {
        Injection::none()
    }

    fn referenced_tools(&self) -> Vec<ToolSelector> {
        self.referenced_tools.clone()
    }

    fn requires_events(&self) -> bool {
        !self.is_initial_replaced
    }

    fn gate(&self, tool: &NamedTool, view: &ConversationView<'_>) -> CallGate {
        let ids = tool_identities(&tool.tool);
        let is_global = ids.iter().any(|id| self.global_tools.contains(id));
        if is_global || self.state_tools_of(&ids).next().is_none() {
            return CallGate::Ungated;
        }
        let state = self.state_after(view.calls());
        match self.state_tool_in(&state, &ids) {
            Some(_) => CallGate::Unlocked,
            None => CallGate::Locked(self.guidance_for(tool, &state, view.tools())),
        }
    }
}

/// Builds a [`StateMachine`]: a state, then its tools, each optionally with the state to which it leads.
#[must_use = "call `build` to create the machine"]
pub struct StateMachineBuilder<S> {
    initial: Option<S>,
    /// The state to which tools are added.
    selected_state: Option<S>,
    tools: Vec<Arc<dyn Tool>>,
    state_tools: Vec<StateTool<S>>,
    global_tools: HashSet<ToolId>,
    referenced_tools: Vec<ToolSelector>,
    /// The error of the first invalid setter call. Building returns it.
    setter_error: Option<Error>,
}

impl<S: MachineState> StateMachineBuilder<S> {
    /// Sets the initial state.
    pub fn initial(mut self, state: S) -> Self {
        self.initial = Some(state);
        self
    }

    /// Selects a state: the tools that follow are added to it.
    pub fn in_state(mut self, state: S) -> Self {
        self.selected_state = Some(state);
        self
    }

    /// Adds a tool to the selected state. A tool can be in several states.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        let id = tool.definition().id.clone();
        self.tools.push(tool);
        self.existing_tool(id)
    }

    /// Adds to the selected state a tool that the conversation gets in another way: from a plugin, behind a facade, or as a
    /// method of entities. `tool` must contain an id, not a name. Building the conversation fails if the conversation does not
    /// have the tool, unless the selector is [late](ToolSelector::later). Use a late selector for a method of entities.
    pub fn existing_tool(mut self, tool: impl Into<ToolSelector>) -> Self {
        let tool = tool.into();
        let id = tool.text().filter(|text| text.contains('#')).map(ToolId::from_text);
        match (&self.selected_state, id) {
            (Some(state), Some(id)) => {
                self.state_tools.push(StateTool {
                    state: state.clone(),
                    tool: id.unbound(),
                    next: None,
                });
                self.referenced_tools.push(tool);
            }
            (None, _) => self.record_error(Self::misplaced_setter_error(
                "a tool is added before `in_state` selects a state",
            )),
            (Some(_), None) => self.record_error(
                Error::new(
                    ErrorKind::Configuration,
                    Phase::Registry,
                    format!("`{}` is not the id of a tool", tool.text().unwrap_or("*")),
                )
                .with_suggestion("an id has a `#`, such as `native#query` or `bank#pay`"),
            ),
        }
        self
    }

    fn misplaced_setter_error(message: &str) -> Error {
        Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(
            "call `in_state`, then `tool` for each of its tools, each optionally followed by `transitions_to`",
        )
    }

    fn record_error(&mut self, error: Error) {
        self.setter_error.get_or_insert(error);
    }

    /// Makes the tool that was last added to a state lead to another state when its call succeeds.
    pub fn transitions_to(mut self, state: S) -> Self {
        match self.state_tools.last_mut() {
            Some(state_tool) => state_tool.next = Some(state),
            None => self.record_error(Self::misplaced_setter_error("`transitions_to` is called before `tool`")),
        }
        self
    }

    /// Adds a tool that can be called in every state.
    pub fn global_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        let id = &tool.definition().id;
        self.referenced_tools.push(ToolSelector::from(id));
        self.global_tools.insert(id.clone());
        self.tools.push(tool);
        self
    }

    /// Creates the machine.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the initial state is missing, if a tool is added before a state is selected or with a
    /// name instead of an id, or if a transition is set before a tool is added.
    pub fn build(self) -> Result<StateMachine<S>, Error> {
        if let Some(error) = self.setter_error {
            return Err(error);
        }
        let initial = self.initial.ok_or_else(|| {
            let message = "the state machine has no initial state";
            Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion("set one with `initial`")
        })?;
        let mut positions: HashMap<ToolId, Vec<usize>> = HashMap::new();
        for (position, state_tool) in self.state_tools.iter().enumerate() {
            positions.entry(state_tool.tool.clone()).or_default().push(position);
        }
        Ok(StateMachine {
            initial,
            is_initial_replaced: false,
            tools: self.tools,
            state_tools: self.state_tools,
            positions,
            global_tools: self.global_tools,
            referenced_tools: self.referenced_tools,
            cached_state: Arc::default(),
        })
    }
}

/// Formats a state in backticks, without the quotes of a string.
fn quoted(state: &impl Debug) -> String {
    let text = format!("{state:?}");
    format!("`{}`", text.trim_matches('"'))
}
