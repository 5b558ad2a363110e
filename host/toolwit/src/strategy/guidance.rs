//! Default instructions for models about the use of tools. They are part of the system prompt.

/// The default guidance for a model that can search for tools.
/// [`ConversationBuilder::guidance`](toolwit_agent::ConversationBuilder::guidance) replaces it.
pub const TOOL_GUIDANCE: &str = "\
You have tools, and `search_tools` finds more of them.
- When a tool can do what is asked, call it; do not describe what you would do.
- Call `search_tools` only for a capability that none of your tools has. What it finds becomes one of your tools: call it \
next, and do not search for the same thing again.
- Use the names of tools exactly as they are given.
- When a tool reports that a key or a setting is missing, ask the user for it.
- A task may take several calls, one after the other.";

/// The default guidance for a model that sees the tools of plugins.
/// [`ConversationBuilder::guidance`](toolwit_agent::ConversationBuilder::guidance) replaces it.
pub const PLUGIN_GUIDANCE: &str = "\
You have tools.
- When a tool can do what is asked, call it; do not describe what you would do.
- Use the names of tools exactly as they are given.
- If one of them is `search_tools`, call it only for a capability that none of the others has. What it finds becomes one of \
your tools.
- When a tool reports that a key or a setting is missing, ask the user for it.
- A task may take several calls, one after the other.";
