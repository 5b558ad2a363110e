//! The WIT bindings of the table tools.

use std::fs;

use self::bindings::exports::toolwit_demo::csv::csv as wit;
use crate::{Aggregate, Comparison, Condition, Function, JoinKind, Table};

#[allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications)]
mod bindings {
    toolwit_guest::bindings!();
}

bindings::export!(Plugin with_types_in bindings);

/// Default maximum number of rows.
const ROWS_DEFAULT: u32 = 100;

/// Maximum size of a file in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

struct Plugin;

impl wit::Guest for Plugin {
    fn describe_table(source: wit::Source) -> Result<wit::Description, String> {
        let table = read_table(source)?;
        let columns = table.describe().into_iter().map(|column| wit::Column {
            name: column.name,
            numeric: column.is_numeric,
            empty: count(column.empty),
            distinct: count(column.distinct),
            least: column.least,
            greatest: column.greatest,
        });
        Ok(wit::Description {
            columns: columns.collect(),
            rows: count(table.rows.len()),
        })
    }

    fn filter_rows(
        source: wit::Source,
        conditions: Vec<wit::Condition>,
        columns: Option<Vec<String>>,
        order: Option<wit::Order>,
        limit: Option<u32>,
    ) -> Result<wit::Table, String> {
        let mut table = sorted(read_table(source)?.filter(&convert(conditions))?, order)?;
        if let Some(columns) = columns.filter(|columns| !columns.is_empty()) {
            table = table.select(&columns)?;
        }
        limited_table(&table, limit)
    }

    fn group_rows(
        source: wit::Source,
        by: Vec<String>,
        aggregates: Vec<wit::Aggregate>,
        conditions: Option<Vec<wit::Condition>>,
        order: Option<wit::Order>,
        limit: Option<u32>,
    ) -> Result<wit::Table, String> {
        let table = read_table(source)?.filter(&convert(conditions.unwrap_or_default()))?;
        let groups = table.group(&by, &convert(aggregates))?;
        limited_table(&sorted(groups, order)?, limit)
    }

    fn join_tables(
        left: wit::Source,
        right: wit::Source,
        on: Vec<wit::JoinKey>,
        kind: Option<wit::JoinKind>,
        limit: Option<u32>,
    ) -> Result<wit::Table, String> {
        let on: Vec<_> = on.into_iter().map(|key| (key.left, key.right)).collect();
        let kind = match kind.unwrap_or(wit::JoinKind::Inner) {
            wit::JoinKind::Inner => JoinKind::Inner,
            wit::JoinKind::Left => JoinKind::Left,
            wit::JoinKind::Full => JoinKind::Full,
        };
        limited_table(&read_table(left)?.join(&read_table(right)?, &on, kind)?, limit)
    }
}

/// Reads a table from a text or a file.
fn read_table(source: wit::Source) -> Result<Table, String> {
    let path = match source {
        wit::Source::Text(text) => return Table::parse(&text),
        wit::Source::File(path) => path,
    };
    let failed = |error| format!("`{path}` cannot be read; it must be a CSV file in a granted directory: {error}");
    let size = fs::metadata(&path).map_err(failed)?.len();
    if size > FILE_BYTES_MAX {
        return Err(format!("`{path}` has {size} bytes; the limit is 16 MiB"));
    }
    let text = fs::read_to_string(&path).map_err(failed)?;
    Table::parse(&text).map_err(|error| format!("`{path}`: {error}"))
}

fn sorted(table: Table, order: Option<wit::Order>) -> Result<Table, String> {
    match order {
        Some(order) => table.sort(&order.column, order.descending),
        None => Ok(table),
    }
}

fn limited_table(table: &Table, limit: Option<u32>) -> Result<wit::Table, String> {
    Ok(wit::Table {
        csv: table.to_csv(limit.unwrap_or(ROWS_DEFAULT) as usize),
        total_rows: count(table.rows.len()),
    })
}

fn convert<A, B: From<A>>(values: Vec<A>) -> Vec<B> {
    values.into_iter().map(B::from).collect()
}

/// Converts a count for the caller. `usize` has 32 bits on this target.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl From<wit::Condition> for Condition {
    fn from(condition: wit::Condition) -> Self {
        Self {
            column: condition.column,
            comparison: match condition.comparison {
                wit::Comparison::Equal => Comparison::Equal,
                wit::Comparison::NotEqual => Comparison::NotEqual,
                wit::Comparison::Less => Comparison::Less,
                wit::Comparison::AtMost => Comparison::AtMost,
                wit::Comparison::Greater => Comparison::Greater,
                wit::Comparison::AtLeast => Comparison::AtLeast,
                wit::Comparison::Contains => Comparison::Contains,
                wit::Comparison::Empty => Comparison::Empty,
                wit::Comparison::NotEmpty => Comparison::NotEmpty,
            },
            value: condition.value,
        }
    }
}

impl From<wit::Aggregate> for Aggregate {
    fn from(aggregate: wit::Aggregate) -> Self {
        Self {
            function: match aggregate.function {
                wit::Function::Count => Function::Count,
                wit::Function::Distinct => Function::Distinct,
                wit::Function::Sum => Function::Sum,
                wit::Function::Mean => Function::Mean,
                wit::Function::Min => Function::Min,
                wit::Function::Max => Function::Max,
            },
            column: aggregate.column,
        }
    }
}
