//! A table, and its form as CSV.

use std::collections::BTreeSet;

use crate::records::{self, Records};
use crate::value::{compare, parse_number};

/// Maximum number of cells that an operation may produce.
pub(crate) const CELLS_MAX: usize = 1_000_000;

/// A table with named columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, each with a value for every column.
    pub rows: Vec<Vec<String>>,
}

/// A description of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name.
    pub name: String,
    /// Whether all values that are not empty are numbers.
    pub is_numeric: bool,
    /// The number of empty values.
    pub empty: usize,
    /// The number of different values.
    pub distinct: usize,
    /// The least value that is not empty.
    pub least: Option<String>,
    /// The greatest value.
    pub greatest: Option<String>,
}

impl Table {
    /// Parses CSV. Short rows are filled with empty values.
    ///
    /// # Errors
    /// If there is no header, a quote is not closed, or a row has more values than the header.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}');
        let mut records = Records::new(text, detect_delimiter(text));
        let header = records.next().ok_or("the table is empty")??;
        let columns: Vec<String> = header.iter().map(|name| name.trim().to_owned()).collect();
        let mut rows = Vec::new();
        for (index, record) in records.enumerate() {
            let mut row = record?;
            if row.len() > columns.len() {
                return Err(format!(
                    "row {} has {} values, but there are {} columns",
                    index + 1,
                    row.len(),
                    columns.len()
                ));
            }
            row.resize(columns.len(), String::new());
            rows.push(row);
        }
        Ok(Self { columns, rows })
    }

    /// Formats the header and the first `limit` rows as CSV.
    #[must_use]
    pub fn to_csv(&self, limit: usize) -> String {
        let mut csv = String::new();
        for record in std::iter::once(&self.columns).chain(self.rows.iter().take(limit)) {
            records::write(record, &mut csv);
        }
        csv
    }

    /// Returns the position of a column. If no column has exactly this name, case is ignored.
    pub(crate) fn position(&self, name: &str) -> Result<usize, String> {
        let exact = self.columns.iter().position(|column| column == name);
        let ignoring_case = || self.columns.iter().position(|column| column.eq_ignore_ascii_case(name));
        let missing = || {
            format!(
                "there is no column `{name}`; the columns are {}",
                self.columns.join(", ")
            )
        };
        exact.or_else(ignoring_case).ok_or_else(missing)
    }

    /// Describes the columns.
    #[must_use]
    pub fn describe(&self) -> Vec<Column> {
        self.columns
            .iter()
            .enumerate()
            .map(|(position, name)| self.describe_column(position, name))
            .collect()
    }

    fn describe_column(&self, position: usize, name: &str) -> Column {
        let values = || self.rows.iter().map(|row| row[position].as_str());
        let filled = || values().filter(|value| !value.is_empty());
        Column {
            name: name.to_owned(),
            is_numeric: filled().next().is_some() && filled().all(|value| parse_number(value).is_some()),
            empty: values().filter(|value| value.is_empty()).count(),
            distinct: values().collect::<BTreeSet<_>>().len(),
            least: filled().min_by(|a, b| compare(a, b)).map(str::to_owned),
            greatest: filled().max_by(|a, b| compare(a, b)).map(str::to_owned),
        }
    }
}

/// Detects the delimiter: the candidate that is most frequent in the first line, or the last of several such candidates.
fn detect_delimiter(text: &str) -> char {
    let first = text.lines().next().unwrap_or_default();
    let count = |candidate: char| first.matches(candidate).count();
    let candidates = ['|', '\t', ';', ','];
    candidates
        .into_iter()
        .max_by_key(|candidate| count(*candidate))
        .unwrap_or(',')
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_quotes_and_short_rows_are_read() {
        let table = Table::parse("\u{feff}name;note\n\"Ann; B\";\"says \"\"hi\"\"\"\nBob\n").unwrap();
        assert_eq!(table.rows, [["Ann; B", "says \"hi\""], ["Bob", ""]]);
        assert_eq!(table.to_csv(1), "name,note\nAnn; B,\"says \"\"hi\"\"\"\n");
        assert_eq!(Table::parse("a\n1\n").unwrap().rows, [["1"]]);
    }

    #[test]
    fn empty_and_ragged_tables_are_refused() {
        assert!(Table::parse("").is_err());
        assert!(Table::parse("a,b\n1,2,3\n").unwrap_err().contains("row 1"));
    }

    #[test]
    fn columns_are_described() {
        let table = Table::parse("n,t\n10,b\n9,\n10,a\n").unwrap();
        let columns = table.describe();
        assert!(columns[0].is_numeric && !columns[1].is_numeric);
        assert_eq!(
            (columns[0].least.as_deref(), columns[0].greatest.as_deref()),
            (Some("9"), Some("10"))
        );
        assert_eq!((columns[1].empty, columns[1].distinct), (1, 3));
    }
}
