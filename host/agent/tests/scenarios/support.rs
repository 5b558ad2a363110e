//! Tools and scripts that the scenarios share.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwit_agent::model::{ScriptedModel, ScriptedTurn};
use toolwit_agent::{ConversationBuilder, Event};
use toolwit_core::{
    Approval, ApprovalGate, ApprovalRequest, Arguments, Decorator, Message, NativeEntity, NativeTool, Origin, Role,
    Tool, ToolContext, ToolError, ToolProvider, ToolResult,
};

/// The part of a result that reports a denied approval.
pub(crate) const DENIED: &str = "not approved";

/// Returns a tool with any arguments whose result a function computes.
pub(crate) fn tool(
    name: &str,
    result: impl Fn(Arguments, ToolContext) -> Result<ToolResult, ToolError> + Send + Sync + 'static,
) -> Arc<dyn Tool> {
    let result = Arc::new(result);
    let schema = json!({"type": "object"});
    let tool = NativeTool::new(name, format!("Is {name}."), schema, move |arguments, context| {
        let result = result.clone();
        async move { result(arguments, context) }
    });
    Arc::new(tool.unwrap())
}

/// Returns a tool that returns its name.
pub(crate) fn echo(name: &str) -> Arc<dyn Tool> {
    let text = name.to_owned();
    tool(name, move |_, _| Ok(ToolResult::text(text.clone())))
}

/// Returns a tool with one required text parameter of this name, and no others.
pub(crate) fn taking(name: &str, parameter: &'static str) -> NativeTool {
    let schema = json!({
        "type": "object",
        "properties": {parameter: {"type": "string"}},
        "required": [parameter],
        "additionalProperties": false,
    });
    let description = format!("Takes {parameter}.");
    let tool = NativeTool::new(name, description, schema, move |arguments, _| async move {
        Ok(ToolResult::text(format!("{parameter} = {}", arguments[parameter])))
    });
    tool.unwrap()
}

/// Returns a guard that denies every call.
pub(crate) fn denial() -> impl Decorator {
    ApprovalGate::new(|request: &ApprovalRequest| Approval::Denied {
        reason: request.tool.to_string(),
    })
}

/// The items of a cart.
pub(crate) type Items = Mutex<Vec<String>>;

/// Returns a new instance of a cart with the method `add`, which returns all items of the instance.
pub(crate) fn cart(id: &str, first: &str) -> NativeEntity<Items> {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Item {
        item: String,
    }
    let cart = NativeEntity::new("cart", Arc::new(Mutex::new(vec![first.to_owned()]))).with_id(id);
    let cart = cart.method("add", "Adds an item.", |items: Arc<Items>, item: Item, _| async move {
        let mut items = items.lock().unwrap();
        items.push(item.item);
        Ok::<_, String>(items.join(","))
    });
    cart.unwrap()
}

/// Returns a tool that returns a new instance of the carts with these ids, each with the tool's name as its first item.
pub(crate) fn opens(
    name: &'static str,
    ids: Vec<String>,
    prepare: fn(NativeEntity<Items>) -> NativeEntity<Items>,
) -> Arc<dyn Tool> {
    tool(name, move |_, _| {
        let carts = ids
            .iter()
            .map(|id| Arc::new(prepare(cart(id, name))) as Arc<dyn ToolProvider>);
        Ok(carts.fold(ToolResult::text("opened"), ToolResult::with_provider))
    })
}

/// Returns a script with a call without arguments in each turn.
pub(crate) fn calls<const N: usize>(names: [&str; N]) -> ScriptedModel {
    let script = ScriptedModel::new();
    names
        .into_iter()
        .fold(script, |script, name| script.call(name, json!({})))
}

/// Returns a turn that calls several tools.
pub(crate) fn together<const N: usize>(calls: [(&str, Value); N]) -> ScriptedTurn {
    let mut calls = calls.into_iter();
    let (name, arguments) = calls.next().unwrap();
    calls.fold(ScriptedTurn::call(name, arguments), |turn, (name, arguments)| {
        turn.and_call(name, arguments)
    })
}

/// Runs a conversation with a model that plays a script and then answers. Returns the results of the calls.
pub(crate) async fn results(builder: ConversationBuilder, script: ScriptedModel) -> Vec<String> {
    let outcome = builder.model(script.answer("done")).run("go").await.unwrap();
    tool_results(&outcome.history)
}

/// Returns the results of the calls in a history.
pub(crate) fn tool_results(history: &[Message]) -> Vec<String> {
    let results = history
        .iter()
        .filter(|message| matches!(message.role, Role::Tool { .. }));
    results.map(|message| message.content().to_owned()).collect()
}

/// The events of a conversation with their origins.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<(Event, Origin)>>>);

impl Log {
    pub(crate) fn observe(&self, builder: ConversationBuilder) -> ConversationBuilder {
        let log = self.0.clone();
        builder
            .observer(move |event: &Event, origin: &Origin| log.lock().unwrap().push((event.clone(), origin.clone())))
    }

    pub(crate) fn with_origins(&self) -> Vec<(Event, Origin)> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.with_origins().into_iter().map(|(event, _)| event).collect()
    }
}
