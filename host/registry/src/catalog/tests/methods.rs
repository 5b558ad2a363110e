//! Tests of the search for methods of entities.

use super::*;

/// A catalog with a shop. `search_customer` is the entry tool of the methods of a customer.
pub(super) fn shop_catalog() -> Catalog {
    let mut catalog = Catalog::new();
    add_shop(&mut catalog);
    catalog
}

pub(super) fn add_shop(catalog: &mut Catalog) {
    add_sample_tools(catalog);
    let entry = "shop#search";
    let method = |name: &str, text: &str| Document::new(format!("shop#{name}"), name, text).with_entry_tools([entry]);
    catalog.put(
        "shop",
        [
            Document::new(entry, "search_customer", "Finds a customer by name"),
            Document::new("shop#compare", "compare", "Compares the spend of two customers"),
            method("customer_get_average_spend", "Returns the average spend of a month"),
            method("customer_delete", "Deletes the account for ever"),
        ],
    );
}

// accept: 30
#[test]
fn method_is_found_through_the_tool_that_leads_to_it() {
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
fn method_that_may_not_be_used_leads_to_nothing() {
    let wanted = Query::new("delete an account");
    let found = |may_use: fn(&str) -> bool| shop_catalog().search(&wanted, may_use);
    assert_eq!(found(|_| true)[0].name, "search_customer");
    assert_eq!(found(|id| id != "shop#customer_delete"), []);
    assert_eq!(found(|id| id != "shop#search"), []);
}
