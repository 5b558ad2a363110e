//! Tools that are there in some states and move from one to another.

use std::fmt::Debug;
use std::sync::Arc;

use super::calls::CallLog;
use super::change::Injection;
use super::context::InjectionContext;
use super::gate::CallGate;
use super::strategy::InjectionStrategy;
use super::view::ConversationView;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{NamedTool, Tool, ToolId};

/// What can be a state: an enum of yours, or a name.
pub trait MachineState: Clone + PartialEq + Debug + Send + Sync + 'static {}

impl<S: Clone + PartialEq + Debug + Send + Sync + 'static> MachineState for S {}

/// A state machine over tools: each state has its own, and a call that succeeds may lead to another state.
///
/// All tools are declared from the start. One that is called in the wrong state answers with the state and what can be called
/// there, and nothing runs. The state follows from the calls of the conversation alone, so it is the same after a resume, in a
/// replay and in a fork. Tools that are in no state can be called in all.
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
/// let resumed = order.clone().starting_in(Order::Confirmed);
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone)]
pub struct StateMachine<S> {
    initial: S,
    entries: Vec<Entry<S>>,
    global: Vec<Arc<dyn Tool>>,
}

/// A tool in a state, and where it leads.
#[derive(Clone)]
struct Entry<S> {
    state: S,
    tool: Arc<dyn Tool>,
    to: Option<S>,
}

impl<S: MachineState> StateMachine<S> {
    /// Starts to describe a machine.
    pub fn builder() -> StateMachineBuilder<S> {
        StateMachineBuilder {
            initial: None,
            state: None,
            entries: Vec::new(),
            global: Vec::new(),
            misplaced: None,
        }
    }

    /// Returns the machine with another state to begin in.
    #[must_use]
    pub fn starting_in(mut self, state: S) -> Self {
        self.initial = state;
        self
    }

    /// Returns all its tools, each once; the conversation must have them.
    #[must_use]
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for tool in self.entries.iter().map(|entry| &entry.tool).chain(&self.global) {
            let is_there = tools.iter().any(|there| there.definition().id == tool.definition().id);
            if !is_there {
                tools.push(tool.clone());
            }
        }
        tools
    }

    /// Returns the state after these calls.
    #[must_use]
    pub fn state_after(&self, calls: &CallLog) -> S {
        let mut state = self.initial.clone();
        for call in calls.succeeded() {
            let entry = self.entry(&state, &call.tool);
            if let Some(to) = entry.and_then(|entry| entry.to.clone()) {
                state = to;
            }
        }
        state
    }

    fn entry(&self, state: &S, tool: &ToolId) -> Option<&Entry<S>> {
        let mut of_state = self.entries.iter().filter(|entry| entry.state == *state);
        of_state.find(|entry| entry.tool.definition().id == *tool)
    }

    fn guide(&self, tool: &NamedTool, state: &S, view: &ConversationView<'_>) -> String {
        let id = &tool.definition.id;
        let has_it = self.entries.iter().filter(|entry| entry.tool.definition().id == *id);
        let mut states: Vec<_> = has_it.map(|entry| shown(&entry.state)).collect();
        states.dedup();
        let here = self.entries.iter().filter(|entry| entry.state == *state);
        let callable: Vec<_> = here
            .filter_map(|entry| {
                let name = &view.tools().by_id(&entry.tool.definition().id)?.name;
                Some(match &entry.to {
                    Some(to) => format!("`{name}` (leads to {})", shown(to)),
                    None => format!("`{name}`"),
                })
            })
            .collect();
        let next = match callable.is_empty() {
            true => "no tool can be called in this state".to_owned(),
            false => format!("what can be called now: {}", callable.join(", ")),
        };
        format!(
            "`{}` can be called in {}, and the state is {}; {next}",
            tool.name,
            states.join(" or "),
            shown(state)
        )
    }
}

impl<S: MachineState> InjectionStrategy for StateMachine<S> {
    fn evaluate(&self, _context: &InjectionContext<'_>) -> Injection {
        Injection::none()
    }

    fn gate(&self, tool: &NamedTool, view: &ConversationView<'_>) -> CallGate {
        let id = &tool.definition.id;
        let is_global = self.global.iter().any(|global| global.definition().id == *id);
        if is_global || !self.entries.iter().any(|entry| entry.tool.definition().id == *id) {
            return CallGate::Ungated;
        }
        let state = self.state_after(view.calls());
        match self.entry(&state, id) {
            Some(_) => CallGate::Open,
            None => CallGate::Locked(self.guide(tool, &state, view)),
        }
    }
}

/// Describes a [`StateMachine`]: a state, then its tools, each perhaps with where it leads.
#[must_use = "a machine is made by `build`"]
pub struct StateMachineBuilder<S> {
    initial: Option<S>,
    /// The state whose tools are being described.
    state: Option<S>,
    entries: Vec<Entry<S>>,
    global: Vec<Arc<dyn Tool>>,
    /// What stands where it means nothing.
    misplaced: Option<&'static str>,
}

impl<S: MachineState> StateMachineBuilder<S> {
    /// Says in which state the machine begins.
    pub fn initial(mut self, state: S) -> Self {
        self.initial = Some(state);
        self
    }

    /// Begins to describe a state: the tools that follow are its own.
    pub fn in_state(mut self, state: S) -> Self {
        self.state = Some(state);
        self
    }

    /// Adds a tool to the state that is being described. The same tool may be in several.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        match &self.state {
            Some(state) => self.entries.push(Entry {
                state: state.clone(),
                tool,
                to: None,
            }),
            None => self.misplaced = Some("`tool` stands before any `in_state`"),
        }
        self
    }

    /// Lets the tool that was added last lead to another state, when its call succeeds.
    pub fn transitions_to(mut self, state: S) -> Self {
        match self.entries.last_mut() {
            Some(entry) => entry.to = Some(state),
            None => self.misplaced = Some("`transitions_to` stands before any `tool`"),
        }
        self
    }

    /// Adds a tool that can be called in every state.
    pub fn global_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.global.push(tool);
        self
    }

    /// Makes the machine.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] without an initial state, and for tools or transitions that belong to nothing.
    pub fn build(self) -> Result<StateMachine<S>, Error> {
        let refused = |message: &str, hint: &str| {
            Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(hint))
        };
        if let Some(message) = self.misplaced {
            return refused(message, "name the state, then its tools, each with where it leads");
        }
        let Some(initial) = self.initial else {
            return refused("the state machine has no initial state", "set one with `initial`");
        };
        Ok(StateMachine {
            initial,
            entries: self.entries,
            global: self.global,
        })
    }
}

/// Writes a state without the quotes that text has.
fn shown(state: &impl Debug) -> String {
    let text = format!("{state:?}");
    format!("`{}`", text.trim_matches('"'))
}
