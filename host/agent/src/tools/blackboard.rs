//! Blackboard tools, with which a model reads the objects on the blackboard.

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::injection::Facade;
use toolwit_core::Error;
use toolwit_core::{
    Blackboard, BlackboardEntry, EffectClass, NativeTool, NoArguments, Tool, ToolContext, ToolError, ToolId, ToolResult,
};

/// A function that formats an object of the blackboard for a model.
type EntryFormatter = dyn Fn(&BlackboardEntry) -> String + Send + Sync;

/// Tools with which a model reads the blackboard. They list, get, describe and count objects, and get the newest object
/// of a type.
///
/// ```
/// use toolwit_agent::BlackboardTools;
///
/// let tools = BlackboardTools::new()
///     .with_format(|entry| {
///         let fields = entry.value().as_object().map_or(0, |object| object.len());
///         format!("{} with {fields} fields", entry.kind())
///     })
///     .tools()?;
/// assert_eq!(tools.len(), 5);
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone)]
pub struct BlackboardTools {
    format: Arc<EntryFormatter>,
}

impl Default for BlackboardTools {
    fn default() -> Self {
        Self {
            format: Arc::new(default_format),
        }
    }
}

/// The arguments of tools that read one object.
#[derive(Deserialize, JsonSchema)]
struct NameArguments {
    /// The name of the object.
    name: String,
}

/// The arguments of tools that read the objects of a type.
#[derive(Deserialize, JsonSchema)]
struct TypeArguments {
    /// The type, by its simple or full name.
    #[serde(rename = "type")]
    kind: String,
}

impl BlackboardTools {
    /// The name of the facade that contains the tools.
    pub const NAME: &'static str = "blackboard";

    /// The description of the facade that contains the tools.
    pub const DESCRIPTION: &'static str = "Shows the objects of earlier steps: lists, gets, describes and counts them.";

    /// Creates tools with the default format of objects. It is the text in the field `info`, otherwise the text in the
    /// field `content`, otherwise the full value: a string without quotes, and any other value as JSON.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the function that formats an object for the model.
    #[must_use]
    pub fn with_format(mut self, format: impl Fn(&BlackboardEntry) -> String + Send + Sync + 'static) -> Self {
        self.format = Arc::new(format);
        self
    }

    /// Returns one facade that contains the tools.
    ///
    /// # Errors
    /// Never in practice: the schemas are fixed.
    pub fn facade(&self) -> Result<Facade, Error> {
        let facade = Facade::builder(Self::NAME, Self::DESCRIPTION).id(ToolId::host(Self::NAME));
        facade.tools(self.tools()?).build()
    }

    /// Returns the tools.
    ///
    /// # Errors
    /// Never in practice: the schemas are fixed.
    pub fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, Error> {
        let (format_named, format_newest, format_described) =
            (self.format.clone(), self.format.clone(), self.format.clone());
        Ok(vec![
            tool(
                "blackboard_list",
                "Lists all objects with their positions, types and names.",
                |board, _: NoArguments| list(board),
            )?,
            tool(
                "blackboard_get",
                "Shows the object with the given name.",
                move |board, arguments: NameArguments| match board.get(&arguments.name) {
                    Some(entry) => ToolResult::text(format_named(&entry)),
                    None => unknown_name_error(board, &arguments.name),
                },
            )?,
            tool(
                "blackboard_last",
                "Shows the newest object of a type.",
                move |board, arguments: TypeArguments| match board.last(&arguments.kind) {
                    Some(entry) => ToolResult::text(format_newest(&entry)),
                    None => ToolResult::error(format!(
                        "there is no object of the type `{}`; `blackboard_list` lists all objects",
                        arguments.kind
                    )),
                },
            )?,
            tool(
                "blackboard_describe",
                "Shows the type, the name and the content of the object with the given name.",
                move |board, arguments: NameArguments| match board.get(&arguments.name) {
                    Some(entry) => ToolResult::text(format!("{}\n{}", heading(&entry), format_described(&entry))),
                    None => unknown_name_error(board, &arguments.name),
                },
            )?,
            tool(
                "blackboard_count",
                "Counts the objects of a type.",
                |board, arguments: TypeArguments| ToolResult::value(board.count(&arguments.kind).into()),
            )?,
        ])
    }
}

/// Formats an object in the default format, which [`BlackboardTools::new`] documents.
fn default_format(entry: &BlackboardEntry) -> String {
    let value = entry.value();
    let text = ["info", "content"].iter().find_map(|key| value.get(key)?.as_str());
    match (text, value) {
        (Some(text), _) => text.to_owned(),
        (None, Value::String(text)) => text.clone(),
        (None, value) => value.to_string(),
    }
}

fn list(board: &dyn Blackboard) -> ToolResult {
    let entries = board.entries();
    if entries.is_empty() {
        return ToolResult::text("The blackboard is empty.");
    }
    let mut lines = String::new();
    for (index, entry) in entries.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{index}: {}", heading(entry));
    }
    ToolResult::text(lines.trim_end())
}

/// Returns the type of an object, and its name if it has one.
fn heading(entry: &BlackboardEntry) -> String {
    match entry.name() {
        Some(name) => format!("{} `{name}`", entry.kind()),
        None => entry.kind().to_owned(),
    }
}

fn unknown_name_error(board: &dyn Blackboard, name: &str) -> ToolResult {
    let entries = board.entries();
    let mut names: Vec<_> = entries
        .iter()
        .filter_map(BlackboardEntry::name)
        .map(|name| format!("`{name}`"))
        .collect();
    names.sort();
    names.dedup();
    let hint = if names.is_empty() {
        "no object has a name".to_owned()
    } else {
        format!("the names are {}", names.join(", "))
    };
    ToolResult::error(format!("there is no object named `{name}`; {hint}"))
}

/// Creates a tool that reads the blackboard of its conversation. `show` computes the result of a call.
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
    let tool = NativeTool::typed_as(
        ToolId::host(name),
        names,
        description,
        move |input: In, context: ToolContext| {
            let show = show.clone();
            async move { Ok::<_, ToolError>(show(&**context.blackboard()?, input)) }
        },
    )?;
    Ok(Arc::new(tool.with_effect(EffectClass::Read)))
}
