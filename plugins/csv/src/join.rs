//! Joins of two tables.

use std::collections::BTreeMap;

use crate::table::{CELLS_MAX, Table};

/// The kind of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Only rows with a match in both tables.
    Inner,
    /// All rows of the left table.
    Left,
    /// All rows of both tables.
    Full,
}

impl Table {
    /// Joins the rows whose values in the pairs of columns are equal. The columns of the right table that are keys are left
    /// out.
    ///
    /// # Errors
    /// If there is no pair, a column does not exist, or the result is too large.
    pub fn join(&self, right: &Self, on: &[(String, String)], kind: JoinKind) -> Result<Self, String> {
        if on.is_empty() {
            return Err("`on` is empty: a join needs a pair of columns".to_owned());
        }
        let left_keys: Vec<usize> = on
            .iter()
            .map(|(name, _)| self.position(name))
            .collect::<Result<_, _>>()?;
        let right_keys: Vec<usize> = on
            .iter()
            .map(|(_, name)| right.position(name))
            .collect::<Result<_, _>>()?;
        let right_columns: Vec<usize> = (0..right.columns.len())
            .filter(|column| !right_keys.contains(column))
            .collect();
        let mut columns = self.columns.clone();
        for column in &right_columns {
            let name = &right.columns[*column];
            let is_taken = self.columns.contains(name);
            columns.push(if is_taken {
                format!("{name}_right")
            } else {
                name.clone()
            });
        }
        let mut index: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
        for (position, row) in right.rows.iter().enumerate() {
            index.entry(key(row, &right_keys)).or_default().push(position);
        }
        let mut is_matched = vec![false; right.rows.len()];
        let mut rows: Vec<Vec<String>> = Vec::new();
        let rows_max = CELLS_MAX / columns.len().max(1);
        for row in &self.rows {
            let matches = index.get(&key(row, &left_keys)).map(Vec::as_slice).unwrap_or_default();
            for position in matches {
                is_matched[*position] = true;
                let cells = right_columns
                    .iter()
                    .map(|column| right.rows[*position][*column].clone());
                rows.push(row.iter().cloned().chain(cells).collect());
            }
            if matches.is_empty() && kind != JoinKind::Inner {
                let empty = right_columns.iter().map(|_| String::new());
                rows.push(row.iter().cloned().chain(empty).collect());
            }
            if rows.len() > rows_max {
                return Err(format!(
                    "the result has more than {rows_max} rows; filter the tables first"
                ));
            }
        }
        if kind == JoinKind::Full {
            let unmatched = right.rows.iter().zip(is_matched).filter(|(_, is_matched)| !is_matched);
            rows.extend(
                unmatched.map(|(row, _)| self.unmatched_right_row(row, (&left_keys, &right_keys), &right_columns)),
            );
        }
        Ok(Self { columns, rows })
    }

    /// Returns a row of the right table without a match, with its keys in the columns of the left table.
    fn unmatched_right_row(
        &self,
        row: &[String],
        (left, right): (&[usize], &[usize]),
        right_columns: &[usize],
    ) -> Vec<String> {
        let mut cells = vec![String::new(); self.columns.len()];
        for (to, from) in left.iter().zip(right) {
            cells[*to].clone_from(&row[*from]);
        }
        cells.extend(right_columns.iter().map(|column| row[*column].clone()));
        cells
    }
}

fn key<'a>(row: &'a [String], keys: &[usize]) -> Vec<&'a str> {
    keys.iter().map(|column| row[*column].as_str()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn join(kind: JoinKind) -> String {
        let orders = Table::parse("id,customer\n1,a\n2,b\n3,a\n").unwrap();
        let customers = Table::parse("key,id\na,Ann\nc,Cy\n").unwrap();
        let on = [("customer".to_owned(), "key".to_owned())];
        orders.join(&customers, &on, kind).unwrap().to_csv(9)
    }

    #[test]
    fn kinds_differ_in_rows_without_a_match() {
        let header = "id,customer,id_right\n";
        assert_eq!(join(JoinKind::Inner), format!("{header}1,a,Ann\n3,a,Ann\n"));
        assert_eq!(join(JoinKind::Left), format!("{header}1,a,Ann\n2,b,\n3,a,Ann\n"));
        assert_eq!(join(JoinKind::Full), format!("{header}1,a,Ann\n2,b,\n3,a,Ann\n,c,Cy\n"));
    }

    #[test]
    fn a_result_that_explodes_is_refused() {
        let table = Table::parse(&format!("k\n{}", "x\n".repeat(1100))).unwrap();
        let on = [("k".to_owned(), "k".to_owned())];
        assert!(
            table
                .join(&table, &on, JoinKind::Inner)
                .unwrap_err()
                .contains("more than")
        );
        assert!(table.join(&table, &[], JoinKind::Inner).is_err());
    }
}
