//! The shipped plugin `customers`: entities with ids, three levels deep, and a cart that keeps its items.

use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::sync::OnceCell;
use toolwit::build::{Build, Silent};
use toolwit::model::ScriptedModel;
use toolwit::sandbox::{Plugin, Scope};
use toolwit::tool::OutputSink;
use toolwit::{ErrorKind, RunOutcome, ToolContext};
use toolwit_tests::{Conversation, Guests};

/// Builds the plugin once for all tests of this file.
async fn customers(guests: &Guests) -> Arc<Plugin> {
    static COMPONENT: OnceCell<Vec<u8>> = OnceCell::const_new();
    let build = || async {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/customers");
        let built = Build::new(project).run(&Silent).await.expect("the plugin builds");
        std::fs::read(built.component).unwrap()
    };
    let bytes = COMPONENT.get_or_init(build).await.clone();
    guests.bytes("customers", bytes).await.unwrap()
}

async fn with_john(guests: &Guests) -> Conversation {
    let mut conversation = Conversation::over(&[&customers(guests).await]);
    let john = conversation
        .value("search_customer", json!({"name": "John Smith"}))
        .await;
    assert_eq!((&john["type"], &john["id"]), (&json!("customer"), &json!("c-123")));
    conversation
}

// accept: 30, accept: 32, accept: 126
#[tokio::test]
async fn found_customer_adds_its_methods_as_tools() {
    let guests = Guests::new();
    let mut conversation = with_john(&guests).await;
    let spend = conversation.value("customer_c123_get_average_spend", json!({})).await;
    assert_eq!(spend["amount"], "450.00");
}

// accept: 29, accept: 34
#[tokio::test]
async fn orders_and_their_line_items_nest() {
    let guests = Guests::new();
    let mut conversation = with_john(&guests).await;
    let orders = conversation
        .value("customer_c123_get_recent_orders", json!({"limit": 2}))
        .await;
    assert_eq!(orders.as_array().map(Vec::len), Some(2));
    for order in orders.as_array().unwrap() {
        let tool = |method: &str| {
            let names = order["available_tools"].as_array().unwrap();
            let name = names.iter().find(|name| name.as_str().unwrap().ends_with(method));
            name.unwrap().as_str().unwrap().to_owned()
        };
        let items = conversation.value(&tool("get_line_items"), json!({})).await;
        assert!(!items.as_array().unwrap().is_empty());
        assert_eq!(items[0]["type"], "line_item");
        conversation.value(&tool("calculate_total"), json!({})).await;
    }
}

// accept: 37, accept: 38
#[tokio::test]
async fn same_customer_again_adds_no_tools() {
    let guests = Guests::new();
    let mut conversation = with_john(&guests).await;
    let names = conversation.names();
    let again = conversation.value("customer_find", json!({"id": "c-123"})).await;
    assert_eq!(again["id"], "c-123");
    assert_eq!(conversation.names(), names);
}

// accept: 32
#[tokio::test]
async fn cart_keeps_its_items_until_checkout() {
    let guests = Guests::new();
    let mut conversation = with_john(&guests).await;
    let product = conversation.value("list_products", json!({})).await[0]["id"].clone();
    let cart = conversation.value("customer_c123_open_cart", json!({})).await;
    let tool = |method: &str| {
        let names = cart["available_tools"].as_array().unwrap();
        names
            .iter()
            .find(|name| name.as_str().unwrap().ends_with(method))
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    };
    for _ in 0..2 {
        conversation
            .value(&tool("add_item"), json!({"product_id": product, "quantity": 1}))
            .await;
    }
    let contents = conversation.value(&tool("get_contents"), json!({})).await;
    assert!(contents.to_string().contains(product.as_str().unwrap()), "{contents}");
    let order = conversation.value("checkout", json!({"cart": cart["id"]})).await;
    assert_eq!(order["type"], "order");
    let gone = conversation.error(&tool("get_contents"), json!({})).await;
    assert_eq!(gone.kind, ErrorKind::EntityGone, "checkout consumes the cart");
    assert!(gone.suggestion.is_some());
}

#[tokio::test]
async fn method_excluded_by_the_scope_is_not_a_tool_of_any_customer() {
    const SPEND: &str = "customers/toolwit-demo:customers/customers@0.1.0#[method]customer.get-average-spend";
    let guests = Guests::new();
    let plugin = customers(&guests).await;
    let names = async |scope: Scope| {
        let tools = plugin.tools(&scope);
        let search = tools
            .iter()
            .find(|tool| tool.definition().name() == "search_customer")
            .unwrap();
        let arguments = serde_json::from_value(json!({"name": "John Smith"})).unwrap();
        let found = search.call(arguments, &ToolContext::new()).await.unwrap();
        let methods = found.providers.iter().flat_map(|provider| provider.tools());
        let names: Vec<_> = methods.map(|tool| tool.definition().name().to_owned()).collect();
        assert_eq!(
            found.value.unwrap()["available_tools"],
            json!(names),
            "the listed tools are the existing ones"
        );
        names
    };
    let (all, some) = (
        names(Scope::new()).await,
        names(Scope::new().restricted_to(|id| id != SPEND)).await,
    );
    let spend = |names: &[String]| names.iter().any(|name| name == "customer_c123_get_average_spend");
    assert!(spend(&all) && !spend(&some), "{some:?}");
    assert_eq!(all.len(), some.len() + 1);
}

#[tokio::test]
async fn two_conversations_never_see_each_others_carts() {
    let guests = Guests::new();
    let (mut mine, mut yours) = (with_john(&guests).await, with_john(&guests).await);
    let cart = mine.value("customer_c123_open_cart", json!({})).await;
    let foreign = yours.error("checkout", json!({"cart": cart["id"]})).await;
    assert_eq!(foreign.kind, ErrorKind::InvalidArguments);
}

// accept: 29
#[tokio::test]
async fn two_customers_have_separate_tools_and_can_be_borrowed_by_one_call() {
    let guests = Guests::new();
    let mut conversation = with_john(&guests).await;
    let found = conversation.value("find_customers", json!({"query": "Smith"})).await;
    let ids: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|customer| customer["id"].clone())
        .collect();
    assert!(ids.len() >= 2);
    conversation
        .value("compare", json!({"first": ids[0], "second": ids[1]}))
        .await;
    let spends = conversation
        .names()
        .iter()
        .filter(|name| name.ends_with("_get_average_spend"))
        .count();
    assert_eq!(spends, ids.len());
}

/// Records the messages to the user.
#[derive(Default)]
struct Screen(Mutex<Vec<String>>);

impl OutputSink for Screen {
    fn progress(&self, _: &str) {}

    fn communicate(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }
}

/// Buys beans for John Smith with the calls that a model would make.
async fn buy_beans(guests: &Guests) -> (RunOutcome, Vec<String>) {
    let scope = Scope::new();
    let screen = Arc::new(Screen::default());
    let model = ScriptedModel::new()
        .call("search_customer", json!({"name": "John Smith"}))
        .call("customer_c123_open_cart", json!({}))
        .call("cart_cart1_add_item", json!({"product_id": "p-01", "quantity": 2}))
        .call("checkout", json!({"cart": "cart-1"}))
        .answer("It is ordered.");
    let outcome = toolwit::Conversation::builder()
        .model(Arc::new(model))
        .tools(customers(guests).await.tools(&scope))
        .context(ToolContext::new().with("tenant", "acme"))
        .output(screen.clone())
        .build()
        .unwrap()
        .run("Buy beans for John Smith")
        .await
        .unwrap();
    let messages = screen.0.lock().unwrap().clone();
    (outcome, messages)
}

// accept: 102, accept: 140
#[tokio::test]
async fn checkout_messages_the_user_and_returns_the_order_as_artifact() {
    let (outcome, messages) = buy_beans(&Guests::new()).await;
    let [order] = outcome.artifacts.as_slice() else {
        panic!("{:?}", outcome.artifacts)
    };
    let value = &order.value;
    assert_eq!((order.kind.as_str(), &value["customer_id"]), ("order", &json!("c-123")));
    assert_eq!(
        (&value["lines"][0]["product_id"], &value["lines"][0]["quantity"]),
        (&json!("p-01"), &json!(2))
    );
    let (id, total) = (value["id"].as_str().unwrap(), value["total"].as_str().unwrap());
    assert_eq!(
        messages,
        [format!("Order {id} for John Smith is placed: 2 pieces, {total} USD.")]
    );
    assert_eq!(value["tenant"], json!(null), "the context key is not granted");

    let grants = tempfile::tempdir().unwrap();
    let file = grants.path().join("grants.toml");
    let text = "version = 1\n[[grant]]\nplugin = \"customers\"\nany-version = true\ncontext = [\"tenant\"]\n";
    std::fs::write(&file, text).unwrap();
    let (outcome, messages) = buy_beans(&Guests::with(|options| options.grants_file = Some(file))).await;
    assert_eq!(
        (&outcome.artifacts[0].value["tenant"], messages.len()),
        (&json!("acme"), 1)
    );
}
