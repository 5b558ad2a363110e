//! An embedder that depends on `toolwit-core` and `toolwit-macros` only: generated code refers to no other crate.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use serde_json::json;
use toolwit_core::{Arguments, FacadeObject, Tool, ToolContext, ToolObject};
use toolwit_macros::{Entity, facade, tool};

/// Adds two numbers.
#[tool(crate = toolwit_core, blocking)]
fn add(a: i64, #[tool(default = 1)] b: i64, _context: &ToolContext) -> i64 {
    a + b
}

#[derive(Clone, Entity)]
#[entity(crate = toolwit_core)]
struct Account {
    id: u32,
}

#[tool(crate = toolwit_core, latest)]
impl Account {
    /// Returns the balance.
    #[tool]
    fn balance(&self) -> u32 {
        self.id * 100
    }
}

struct Bank;

/// Opens accounts.
#[facade(crate = toolwit_core)]
impl Bank {
    /// Finds an account.
    #[tool]
    fn find_account(&self, id: u32) -> Account {
        Account { id }
    }
}

/// Groups banks.
#[facade(crate = toolwit_core)]
struct Banks {
    first: Arc<Bank>,
}

#[tokio::test]
async fn every_macro_works_with_the_core_alone() {
    let arguments = |value: serde_json::Value| value.as_object().unwrap().clone();
    let sum = add_tool()
        .unwrap()
        .call(arguments(json!({"a": 1})), &ToolContext::new())
        .await;
    assert_eq!(sum.unwrap().for_llm, "2");
    let tools = ToolObject::new(Bank).tools().unwrap();
    let found = tools[0]
        .call(arguments(json!({"id": 7})), &ToolContext::new())
        .await
        .unwrap();
    let balance = found.providers[0].tools()[0]
        .call(Arguments::new(), &ToolContext::new())
        .await;
    assert_eq!(balance.unwrap().for_llm, "700");
    let banks = Arc::new(Banks { first: Arc::new(Bank) });
    let outline = banks.facade().unwrap();
    assert_eq!((outline.name.as_str(), outline.tools.len()), ("banks", 0));
    assert_eq!(outline.facades[0].description, "Opens accounts.");
}
