//! Groups of rows and aggregates.

use std::collections::{BTreeMap, BTreeSet};

use crate::table::Table;
use crate::value::{Sum, compare, parse_number};

/// A function of the values in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The number of values that are not empty.
    Count,
    /// The number of different values that are not empty.
    Distinct,
    /// The sum.
    Sum,
    /// The mean.
    Mean,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
}

impl Function {
    fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Distinct => "distinct",
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// Applies the function to the values of a column that are not empty. An error names the column.
    fn apply(self, values: &[&str], column: &str) -> Result<String, String> {
        let text_or_empty = |value: Option<&&str>| value.map(|value| (*value).to_owned()).unwrap_or_default();
        Ok(match self {
            Self::Count => values.len().to_string(),
            Self::Distinct => values.iter().collect::<BTreeSet<_>>().len().to_string(),
            Self::Min => text_or_empty(values.iter().min_by(|a, b| compare(a, b))),
            Self::Max => text_or_empty(values.iter().max_by(|a, b| compare(a, b))),
            Self::Sum | Self::Mean => {
                let mut sum = Sum::new();
                for text in values {
                    let value = parse_number(text);
                    let value = value.ok_or_else(|| format!("`{text}` in the column `{column}` is not a number"))?;
                    sum.add(text, value);
                }
                if self == Self::Sum { sum.total() } else { sum.mean() }
            }
        })
    }
}

/// A column of a result that aggregates the values of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregate {
    /// The function.
    pub function: Function,
    /// The column.
    pub column: String,
}

impl Table {
    /// Groups rows by columns. The result has these columns, the number of rows of each group, and the aggregates. The groups
    /// are in the order of their first rows.
    ///
    /// # Errors
    /// If a column does not exist, or a value of a sum or mean is not a number.
    pub fn group(&self, by: &[String], aggregates: &[Aggregate]) -> Result<Self, String> {
        let keys: Vec<usize> = by.iter().map(|name| self.position(name)).collect::<Result<_, _>>()?;
        let mut positions: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        let mut groups: Vec<Vec<&Vec<String>>> = Vec::new();
        for row in &self.rows {
            let key = keys.iter().map(|column| row[*column].as_str()).collect();
            let position = *positions.entry(key).or_insert(groups.len());
            if position == groups.len() {
                groups.push(Vec::new());
            }
            groups[position].push(row);
        }
        if keys.is_empty() && groups.is_empty() {
            groups.push(Vec::new());
        }
        let mut columns: Vec<String> = keys.iter().map(|column| self.columns[*column].clone()).collect();
        columns.push("rows".to_owned());
        let mut functions = Vec::new();
        for aggregate in aggregates {
            let column = self.position(&aggregate.column)?;
            columns.push(format!("{}({})", aggregate.function.name(), self.columns[column]));
            functions.push((aggregate.function, column));
        }
        let mut rows = Vec::new();
        for group in groups {
            let first = group.first();
            let mut row: Vec<String> = keys.iter().filter_map(|column| Some(first?[*column].clone())).collect();
            row.push(group.len().to_string());
            for (function, column) in &functions {
                let values = group
                    .iter()
                    .map(|row| row[*column].as_str())
                    .filter(|value| !value.is_empty());
                row.push(function.apply(&values.collect::<Vec<_>>(), &self.columns[*column])?);
            }
            rows.push(row);
        }
        Ok(Self { columns, rows })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn aggregate(function: Function, column: &str) -> Aggregate {
        let column = column.to_owned();
        Aggregate { function, column }
    }

    #[test]
    fn rows_are_grouped_and_aggregated() {
        let table = Table::parse("city,price\nRome,0.1\nParis,5\nRome,0.2\nRome,\n").unwrap();
        let functions = [Function::Sum, Function::Mean, Function::Count, Function::Max];
        let aggregates = functions.map(|function| aggregate(function, "price"));
        let groups = table.group(&["city".to_owned()], &aggregates).unwrap();
        let expected =
            "city,rows,sum(price),mean(price),count(price),max(price)\nRome,3,0.3,0.15,2,0.2\nParis,1,5,5,1,5\n";
        assert_eq!(groups.to_csv(9), expected);
        let all = table.group(&[], &[aggregate(Function::Distinct, "city")]).unwrap();
        assert_eq!(all.rows, [["4", "2"]]);
    }

    #[test]
    fn a_sum_of_words_is_refused() {
        let table = Table::parse("a\nx\n").unwrap();
        let refused = table.group(&[], &[aggregate(Function::Sum, "a")]).unwrap_err();
        assert_eq!(refused, "`x` in the column `a` is not a number");
    }
}
