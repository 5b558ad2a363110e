//! Tools that show a model what is on the blackboard.

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::injection::Facade;
use toolwit_core::Error;
use toolwit_core::{
    Blackboard, BlackboardEntry, NativeTool, NoArguments, Tool, ToolContext, ToolError, ToolId, ToolResult,
};

/// Writes an object as a model reads it.
type Format = dyn Fn(&BlackboardEntry) -> String + Send + Sync;

/// The tools with which a model looks at the blackboard: what is there, one object, how many of a type.
///
/// ```
/// use toolwit_agent::BlackboardTools;
///
/// let tools = BlackboardTools::new()
///     .with_format(|entry| format!("{} with {} fields", entry.kind(), entry.value().as_object().map_or(0, |o| o.len())))
///     .tools()?;
/// assert_eq!(tools.len(), 5);
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone)]
pub struct BlackboardTools {
    format: Arc<Format>,
}

impl Default for BlackboardTools {
    fn default() -> Self {
        Self {
            format: Arc::new(plain_entry),
        }
    }
}

/// Names an object.
#[derive(Deserialize, JsonSchema)]
struct Named {
    /// The name under which the object was put down.
    name: String,
}

/// Names a type.
#[derive(Deserialize, JsonSchema)]
struct OfKind {
    /// The type, by its simple name or its full one.
    #[serde(rename = "type")]
    kind: String,
}

impl BlackboardTools {
    /// The name of the facade before the tools.
    pub const NAME: &'static str = "blackboard";

    /// What the tools are for, as a model reads it.
    pub const DESCRIPTION: &'static str =
        "Shows the objects that earlier steps have left: lists, gets, describes and counts them.";

    /// Shows objects with [`plain_entry`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows objects in another form.
    #[must_use]
    pub fn with_format(mut self, format: impl Fn(&BlackboardEntry) -> String + Send + Sync + 'static) -> Self {
        self.format = Arc::new(format);
        self
    }

    /// Makes one tool that opens into the others.
    ///
    /// # Errors
    /// None in practice; the schemas are fixed.
    pub fn facade(&self) -> Result<Facade, Error> {
        let facade = Facade::builder(Self::NAME, Self::DESCRIPTION).id(ToolId::host(Self::NAME));
        facade.tools(self.tools()?).build()
    }

    /// Makes the tools.
    ///
    /// # Errors
    /// None in practice; the schemas are fixed.
    pub fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, Error> {
        let (get, last, describe) = (self.format.clone(), self.format.clone(), self.format.clone());
        Ok(vec![
            tool(
                "blackboard_list",
                "Lists all objects with their types and places.",
                |board, _: NoArguments| list(board),
            )?,
            tool(
                "blackboard_get",
                "Shows the object of a name.",
                move |board, named: Named| match board.get(&named.name) {
                    Some(entry) => ToolResult::text(get(&entry)),
                    None => nothing_named(board, &named.name),
                },
            )?,
            tool(
                "blackboard_last",
                "Shows the newest object of a type.",
                move |board, of: OfKind| match board.last(&of.kind) {
                    Some(entry) => ToolResult::text(last(&entry)),
                    None => ToolResult::error(format!(
                        "there is no object of the type `{}`; `blackboard_list` shows all",
                        of.kind
                    )),
                },
            )?,
            tool(
                "blackboard_describe",
                "Describes the object of a name: its type, and all that is in it.",
                move |board, named: Named| match board.get(&named.name) {
                    Some(entry) => ToolResult::text(format!("{}\n{}", heading(&entry), describe(&entry))),
                    None => nothing_named(board, &named.name),
                },
            )?,
            tool(
                "blackboard_count",
                "Counts the objects of a type.",
                |board, of: OfKind| ToolResult::value(board.count(&of.kind).into()),
            )?,
        ])
    }
}

/// Writes an object as its `info` text, else as its `content`, else as it is.
#[must_use]
pub fn plain_entry(entry: &BlackboardEntry) -> String {
    let value = entry.value();
    let text = ["info", "content"].iter().find_map(|key| value.get(key)?.as_str());
    match (text, value) {
        (Some(text), _) => text.to_owned(),
        (None, Value::String(text)) => text.clone(),
        (None, other) => other.to_string(),
    }
}

fn list(board: &dyn Blackboard) -> ToolResult {
    let entries = board.entries();
    if entries.is_empty() {
        return ToolResult::text("The blackboard is empty.");
    }
    let mut lines = String::new();
    for (place, entry) in entries.iter().enumerate() {
        // Writing to a text cannot fail.
        let _ = writeln!(lines, "{place}: {}", heading(entry));
    }
    ToolResult::text(lines.trim_end())
}

fn heading(entry: &BlackboardEntry) -> String {
    match entry.name() {
        Some(name) => format!("{} `{name}`", entry.kind()),
        None => entry.kind().to_owned(),
    }
}

fn nothing_named(board: &dyn Blackboard, name: &str) -> ToolResult {
    let entries = board.entries();
    let mut names: Vec<_> = entries
        .iter()
        .filter_map(BlackboardEntry::name)
        .map(|name| format!("`{name}`"))
        .collect();
    names.sort();
    names.dedup();
    let known = match names.is_empty() {
        true => "no object has a name".to_owned(),
        false => format!("the names are {}", names.join(", ")),
    };
    ToolResult::error(format!("there is no object named `{name}`; {known}"))
}

fn tool<In>(
    name: &str,
    description: &str,
    show: impl Fn(&dyn Blackboard, In) -> ToolResult + Send + Sync + 'static,
) -> Result<Arc<dyn Tool>, Error>
where
    In: serde::de::DeserializeOwned + JsonSchema + Send + 'static,
{
    let show = Arc::new(show);
    let names = vec![name.to_owned()];
    let made = NativeTool::typed_as(
        ToolId::host(name),
        names,
        description,
        move |input: In, context: ToolContext| {
            let show = show.clone();
            async move { Ok::<_, ToolError>(show(&**context.blackboard()?, input)) }
        },
    )?;
    Ok(Arc::new(made))
}
