//! Queries of tools, in SQLite.

use rusqlite::{Connection, Row, params_from_iter};

use super::packages::read_health;
use crate::store::{StoreError, StoredTool, ToolOrder, ToolQuery};

/// Returns the tools that a query selects, in its order.
pub(super) fn select(connection: &Connection, query: &ToolQuery) -> Result<Vec<StoredTool>, StoreError> {
    let mut statement = connection.prepare_cached(&sql(query))?;
    let rows = statement.query_map(params_from_iter(&query.category), stored_tool)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the SQL statement of a query. The schema has an index for each order and an index for the category.
fn sql(query: &ToolQuery) -> String {
    let condition = match query.category {
        Some(_) => "WHERE category = ?1",
        None => "",
    };
    let order = match query.order {
        ToolOrder::Uses => "uses DESC",
        ToolOrder::Quality => "quality_percent DESC",
        // The alphabetical order of the states is the required order: broken, healthy, unknown.
        ToolOrder::Health => "CASE WHEN import_health = 'broken' THEN 'broken' ELSE execution_health END",
    };
    format!(
        "SELECT tools.id, tools.name, path, category, quality_percent,
                import_health, execution_health, health_error, checked_ms, uses
         FROM tools JOIN packages ON package = packages.id {condition} ORDER BY {order}, tools.id"
    )
}

fn stored_tool(row: &Row<'_>) -> rusqlite::Result<StoredTool> {
    Ok(StoredTool {
        id: row.get(0)?,
        name: row.get(1)?,
        path: row.get(2)?,
        category: row.get(3)?,
        quality_percent: row.get(4)?,
        health: read_health(row, 5)?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::SqliteStore;
    use super::*;

    // accept: 124
    #[test]
    fn each_order_and_the_category_use_an_index() {
        let store = SqliteStore::in_memory().unwrap();
        let connection = store.connection();
        for (query, index) in [
            (ToolQuery::new(ToolOrder::Uses), "tools_by_use"),
            (ToolQuery::new(ToolOrder::Quality), "tools_by_quality"),
            (ToolQuery::new(ToolOrder::Health), "tools_by_health"),
            (ToolQuery::default().in_category("data"), "packages_by_category"),
        ] {
            let explain = format!("EXPLAIN QUERY PLAN {}", sql(&query));
            let mut statement = connection.prepare(&explain).unwrap();
            let steps = statement.query_map(params_from_iter(&query.category), |row| row.get::<_, String>(3));
            let steps: Vec<_> = steps.unwrap().map(Result::unwrap).collect();
            assert!(steps.iter().any(|step| step.contains(index)), "{query:?}: {steps:?}");
        }
    }
}
