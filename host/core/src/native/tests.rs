#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::{
    Arguments, Artifact, EntityMethods, ErrorKind, NativeEntity, Signal, Tool, ToolContext, ToolObject, ToolProvider,
    ToolResult, ToolSet,
};

#[derive(Clone, Copy, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

/// Returns the temperature
/// of a place.
///
/// Not the future one.
#[crate::tool(name = "heat")]
async fn temperature(
    /// Where.
    place: String,
    context: &ToolContext,
    #[tool(default = Unit::Celsius)] unit: Unit,
    /// How many decimal places.
    digits: Option<u8>,
) -> Result<String, String> {
    let unit = match unit {
        Unit::Celsius => "C",
        Unit::Fahrenheit => "F",
    };
    let tenant = context.text("tenant").unwrap_or("no tenant");
    match place.as_str() {
        "nowhere" => Err("there is no such place".to_owned()),
        _ => Ok(format!("{place}: 20 {unit} for {tenant}, {digits:?}")),
    }
}

#[crate::tool(description = "Does nothing.", return_direct)]
fn do_nothing() {}

/// Returns a stone.
#[crate::tool]
fn stone() -> ToolResult {
    ToolResult::text("a stone").with_artifact(Artifact::new("Stone", json!({})))
}

/// Stops.
#[crate::tool]
async fn stop(#[tool(default = "enough")] reason: String) -> Result<u8, Signal> {
    Err(Signal::terminate(reason))
}

fn arguments(value: Value) -> Arguments {
    value.as_object().unwrap().clone()
}

async fn call(tool: &dyn Tool, value: Value) -> ToolResult {
    let context = ToolContext::new().with("tenant", "acme");
    tool.call(arguments(value), &context).await.unwrap()
}

// accept: 77, accept: 87, accept: 143
#[tokio::test]
async fn a_function_with_the_attribute_is_a_tool() {
    let heat = temperature_tool().unwrap();
    let definition = heat.definition();
    assert_eq!(definition.name(), "heat");
    assert_eq!(
        definition.description,
        "Returns the temperature of a place.\n\nNot the future one."
    );
    let schema = &definition.input_schema;
    assert_eq!(schema["required"], json!(["place"]));
    assert_eq!(schema["properties"]["place"]["description"], "Where.");
    assert_eq!(
        schema["properties"]["digits"]["description"],
        "How many decimal places."
    );
    assert!(schema["properties"].get("context").is_none(), "{schema}");
    assert!(
        schema.to_string().contains("fahrenheit"),
        "the schema lists the allowed values: {schema}"
    );
    assert_eq!(
        call(&heat, json!({"place": "Oslo"})).await.for_llm,
        "Oslo: 20 C for acme, None"
    );
    let with_unit = json!({"place": "Oslo", "unit": "fahrenheit", "digits": 1});
    assert_eq!(call(&heat, with_unit).await.for_llm, "Oslo: 20 F for acme, Some(1)");
    assert!(call(&heat, json!({"place": "nowhere"})).await.is_error());
    for invalid in [
        json!({}),
        json!({"place": "Oslo", "unit": "kelvin"}),
        json!({"place": "Oslo", "more": 1}),
    ] {
        let result = heat.call(arguments(invalid.clone()), &ToolContext::new()).await;
        assert_eq!(
            result.unwrap_err().report().kind,
            ErrorKind::InvalidArguments,
            "{invalid}"
        );
    }
    let direct = temperature("Rome".to_owned(), &ToolContext::new(), Unit::Celsius, None).await;
    assert_eq!(
        direct.unwrap(),
        "Rome: 20 C for no tenant, None",
        "the function can still be called directly"
    );
}

// accept: 76, accept: 143
#[tokio::test]
async fn a_function_may_return_nothing_or_a_tool_result_or_a_signal() {
    let result = call(&do_nothing_tool().unwrap(), json!({})).await;
    assert_eq!((result.for_llm.as_str(), result.is_final()), ("done", true));
    assert_eq!(call(&stone_tool().unwrap(), json!({})).await.artifacts[0].kind, "Stone");
    let result = call(&stop_tool().unwrap(), json!({})).await;
    assert_eq!(result.signal, Some(Signal::terminate("enough")));
    assert!(!result.is_error());
}

struct Cart {
    id: u32,
    items: Mutex<Vec<String>>,
}

impl Cart {
    fn with_id(id: u32) -> Arc<Self> {
        Arc::new(Self {
            id,
            items: Mutex::default(),
        })
    }
}

#[crate::tool(id = id)]
impl Cart {
    /// Puts an item into the cart.
    #[tool(category = "write")]
    fn add_item(&self, item: String, context: ToolContext) -> usize {
        let mut items = self.items.lock().unwrap();
        items.push(format!("{item}{}", context.text("tenant").unwrap_or_default()));
        items.len()
    }

    /// Lists the items.
    #[tool]
    async fn contents(self: Arc<Self>) -> Vec<String> {
        self.items.lock().unwrap().clone()
    }

    /// Returns the rules.
    #[tool]
    fn rules() -> &'static str {
        "Be fair."
    }

    #[tool(skip)]
    fn not_a_tool(&self) -> u32 {
        self.id
    }
}

// accept: 77, accept: 79, accept: 32
#[tokio::test]
async fn methods_with_the_attribute_are_tools_on_the_live_object() {
    let cart = Cart::with_id(1);
    let tools = ToolObject::shared(cart.clone()).tools().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.definition().name().to_owned()).collect();
    assert_eq!(names, ["add_item", "contents", "rules"]);
    assert_eq!(call(&*tools[0], json!({"item": "pen"})).await.for_llm, "1");
    assert_eq!(call(&*tools[1], json!({})).await.for_llm, r#"["penacme"]"#);
    assert_eq!(call(&*tools[2], json!({})).await.for_llm, "Be fair.");
    assert_eq!(cart.not_a_tool(), 1);
}

// accept: 79, accept: 143
#[test]
fn methods_are_renamed_and_filtered_and_an_object_without_methods_is_an_error() {
    let object = || ToolObject::shared(Cart::with_id(1)).with_names(|method| format!("cart_{method}"));
    let tools = object()
        .with_filter(|method| method.starts_with("add"))
        .tools()
        .unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0].definition().name(), "cart_add_item");
    let categories: Vec<_> = object()
        .tools()
        .unwrap()
        .iter()
        .map(|tool| tool.definition().category.clone())
        .collect();
    assert_eq!(
        categories,
        [Some("write".to_owned()), None, None],
        "each tool has the category of its method"
    );
    let empty = object().with_filter(|_| false);
    assert!(empty.tools().err().unwrap().message.contains("`cart` has no methods"));
    assert!(empty.tools_if_any().unwrap().is_empty());
}

// accept: 43
#[test]
fn the_methods_of_a_type_can_be_bound_to_an_object_later() {
    let methods = EntityMethods::<Cart>::from_tool_methods().unwrap();
    assert_eq!(methods.prefix(), "cart");
    let cart = methods.entity("7", Cart::with_id(7)).unwrap();
    assert_eq!(cart.tools()[0].definition().name(), "cart_7_add_item");
}

// accept: 28, accept: 30, accept: 148
#[test]
fn an_object_with_an_id_is_an_entity_with_this_id() {
    let entities = [1, 2].map(|id| NativeEntity::from_methods(Cart::with_id(id)).unwrap());
    assert_eq!(entities[0].prefix(), "cart");
    assert_eq!(entities[1].instance_id().as_deref(), Some("2"));
    let mut set = ToolSet::new();
    let tools = entities.iter().flat_map(ToolProvider::tools);
    let names: Vec<_> = tools.map(|tool| set.add(tool).name().to_string()).collect();
    assert_eq!(names[..2], ["cart_1_add_item", "cart_1_contents"]);
    assert_eq!(names[3], "cart_2_add_item");
}

/// Waits for a message on a channel of the standard library.
#[crate::tool(blocking)]
fn wait(seconds: u64, context: &ToolContext) -> Result<String, String> {
    let receiver = context.extension::<Mutex<std::sync::mpsc::Receiver<String>>>();
    let receiver = receiver.ok_or("no channel")?.lock().map_err(|_| "broken")?;
    let timeout = std::time::Duration::from_secs(seconds);
    receiver.recv_timeout(timeout).map_err(|error| error.to_string())
}

// On one thread, the message can be sent during the call only if the call does not block that thread.
#[tokio::test(flavor = "current_thread")]
async fn a_blocking_tool_leaves_the_thread_of_the_runtime_free() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let context = ToolContext::new().with_extension(Mutex::new(receiver));
    let wait = wait_tool().unwrap();
    let call = wait.call(arguments(json!({"seconds": 20})), &context);
    let send = async { sender.send("done waiting".to_owned()).unwrap() };
    let (result, ()) = tokio::join!(call, send);
    assert_eq!(result.unwrap().for_llm, "done waiting");
}

struct Clock;

#[crate::tool(concurrent)]
impl Clock {
    /// Panics.
    #[tool(blocking)]
    fn explode(&self) -> u8 {
        panic!("the clock explodes")
    }
}

#[tokio::test]
async fn a_panic_of_a_blocking_tool_is_a_panic_of_the_call() {
    let tools = ToolObject::new(Clock).tools().unwrap();
    assert_eq!(tools[0].serial_group(), None, "the type allows concurrent calls");
    let call = tokio::spawn(async move { tools[0].call(Arguments::new(), &ToolContext::new()).await.is_ok() });
    assert!(call.await.unwrap_err().is_panic());
}

// accept: 129
#[test]
fn the_tools_of_an_object_belong_to_one_serial_group() {
    let groups = |object: ToolObject| -> Vec<_> {
        let tools = object.tools().unwrap();
        tools.iter().map(|tool| tool.serial_group()).collect()
    };
    let cart_groups = groups(ToolObject::shared(Cart::with_id(1)));
    assert!(
        cart_groups[0].is_some() && cart_groups.iter().all(|group| *group == cart_groups[0]),
        "{cart_groups:?}"
    );
    assert_ne!(
        groups(ToolObject::shared(Cart::with_id(2)))[0],
        cart_groups[0],
        "another object has another group"
    );
    assert_eq!(
        groups(ToolObject::shared(Cart::with_id(1)).concurrent()),
        [None, None, None]
    );
}

// accept: 76
#[tokio::test]
async fn typed_output_stays_typed_in_the_process_and_is_json_for_the_model() {
    #[derive(serde::Serialize)]
    struct Forecast {
        celsius: i32,
    }
    let tool = crate::NativeTool::typed("forecast", "", |_: crate::NoArguments, _| async {
        Ok::<_, String>(Forecast { celsius: 20 })
    });
    let result = call(&tool.unwrap(), json!({})).await;
    assert_eq!(result.for_llm, r#"{"celsius":20}"#);
    assert_eq!(result.downcast::<Forecast>().unwrap().celsius, 20);
    assert!(result.downcast::<i32>().is_none());
}
