//! Tests of the search for methods of entities.

use super::*;

/// Creates a catalog with the sample tools and the tools of a shop.
pub(super) fn shop_catalog() -> Catalog {
    let mut catalog = Catalog::new();
    add_shop_tools(&mut catalog);
    catalog
}

/// Adds the sample tools and the tools of a shop. `search_customer` is the entry tool of the methods of a customer.
pub(super) fn add_shop_tools(catalog: &mut Catalog) {
    add_sample_tools(catalog);
    let entry_tool = "shop#search";
    let method =
        |name: &str, text: &str| Document::new(format!("shop#{name}"), name, text).with_entry_tools([entry_tool]);
    catalog.put(
        "shop",
        [
            Document::new(entry_tool, "search_customer", "Finds a customer by name"),
            Document::new("shop#compare", "compare", "Compares the spend of two customers"),
            method("customer_get_average_spend", "Returns the average spend of a month"),
            method("customer_delete", "Deletes the account for ever"),
        ],
    );
}

// accept: 30
#[test]
fn method_is_found_through_its_entry_tool() {
    let catalog = shop_catalog();
    let hits = catalog.search(&Query::new("What is the average spend of John?"), |_| true);
    assert_eq!(hits[0].name, "search_customer");
    assert_eq!(hits[0].leads_to.as_ref().unwrap().name, "customer_get_average_spend");
    assert!(hits.iter().all(|hit| !hit.name.starts_with("customer_")), "{hits:?}");
    let by_name = catalog.search(&Query::new("call `customer_get_average_spend`"), |_| true);
    assert_eq!(
        (by_name[0].name.as_str(), by_name[0].is_exact),
        ("search_customer", true)
    );
    let direct = catalog.search(&Query::new("find a customer by name"), |_| true);
    assert_eq!(
        (direct[0].name.as_str(), &direct[0].leads_to),
        ("search_customer", &None)
    );
}

// accept: 110
#[test]
fn method_is_found_only_if_it_and_its_entry_tool_may_be_used() {
    let query = Query::new("delete an account");
    let search = |may_use: fn(&str) -> bool| shop_catalog().search(&query, may_use);
    assert_eq!(search(|_| true)[0].name, "search_customer");
    assert_eq!(search(|id| id != "shop#customer_delete"), []);
    assert_eq!(search(|id| id != "shop#search"), []);
}
