//! Selection and order of rows.

use crate::table::Table;
use crate::value::compare;

/// The comparison of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The values are equal.
    Equal,
    /// The values differ.
    NotEqual,
    /// The value is less than that of the condition.
    Less,
    /// The value is less than or equal to that of the condition.
    AtMost,
    /// The value is greater than that of the condition.
    Greater,
    /// The value is greater than or equal to that of the condition.
    AtLeast,
    /// The value contains that of the condition, ignoring case.
    Contains,
    /// The value is empty.
    Empty,
    /// The value is not empty.
    NotEmpty,
}

/// A condition on a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The column.
    pub column: String,
    /// The comparison.
    pub comparison: Comparison,
    /// The value to compare with.
    pub value: String,
}

impl Condition {
    fn matches(&self, value: &str) -> bool {
        let order = compare(value, &self.value);
        match self.comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            // An empty value is neither less nor greater than another.
            Comparison::Less => order.is_lt() && !value.is_empty(),
            Comparison::AtMost => order.is_le() && !value.is_empty(),
            Comparison::Greater => order.is_gt() && !value.is_empty(),
            Comparison::AtLeast => order.is_ge() && !value.is_empty(),
            Comparison::Contains => value.to_lowercase().contains(&self.value.to_lowercase()),
            Comparison::Empty => value.is_empty(),
            Comparison::NotEmpty => !value.is_empty(),
        }
    }
}

impl Table {
    /// Selects the rows that fulfil all conditions.
    ///
    /// # Errors
    /// If a column does not exist.
    pub fn filter(mut self, conditions: &[Condition]) -> Result<Self, String> {
        for condition in conditions {
            let position = self.position(&condition.column)?;
            self.rows.retain(|row| condition.matches(&row[position]));
        }
        Ok(self)
    }

    /// Selects columns.
    ///
    /// # Errors
    /// If a column does not exist.
    pub fn select(self, columns: &[String]) -> Result<Self, String> {
        let positions: Vec<usize> = columns
            .iter()
            .map(|name| self.position(name))
            .collect::<Result<_, _>>()?;
        let pick = |row: &Vec<String>| positions.iter().map(|position| row[*position].clone()).collect();
        Ok(Self {
            columns: pick(&self.columns),
            rows: self.rows.iter().map(pick).collect(),
        })
    }

    /// Sorts the rows by a column. Rows with equal values keep their order.
    ///
    /// # Errors
    /// If the column does not exist.
    pub fn sort(mut self, column: &str, descending: bool) -> Result<Self, String> {
        let position = self.position(column)?;
        self.rows.sort_by(|a, b| {
            let order = compare(&a[position], &b[position]);
            if descending { order.reverse() } else { order }
        });
        Ok(self)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::parse("name,price\nTea,2.50\nCake,10\nWater,\n").unwrap()
    }

    fn names(comparison: Comparison, column: &str, value: &str) -> Vec<String> {
        let (column, value) = (column.to_owned(), value.to_owned());
        let condition = Condition {
            column,
            comparison,
            value,
        };
        let rows = table().filter(&[condition]).unwrap().rows;
        rows.into_iter().map(|row| row[0].clone()).collect()
    }

    #[test]
    fn conditions_compare_numbers_and_text() {
        assert_eq!(names(Comparison::Less, "price", "9"), ["Tea"]);
        assert_eq!(names(Comparison::AtLeast, "Price", "2.5"), ["Tea", "Cake"]);
        assert_eq!(names(Comparison::Contains, "name", "A"), ["Tea", "Cake", "Water"]);
        assert_eq!(names(Comparison::Empty, "price", ""), ["Water"]);
        assert_eq!(names(Comparison::NotEqual, "price", "2.50"), ["Cake", "Water"]);
    }

    #[test]
    fn rows_are_sorted_by_value_and_unknown_columns_are_named() {
        let sorted = table()
            .sort("price", true)
            .unwrap()
            .select(&["name".to_owned()])
            .unwrap();
        assert_eq!(sorted.rows, [["Water"], ["Cake"], ["Tea"]]);
        assert!(
            table()
                .sort("cost", false)
                .unwrap_err()
                .contains("`cost`; the columns are name, price")
        );
    }
}
