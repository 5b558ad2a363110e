//! Values of cells: text that may be a decimal number.

use std::cmp::Ordering;

/// Maximum number of decimal places of an exact number.
const PLACES_MAX: usize = 12;

/// Maximum number of digits of an exact number, so that sums of millions do not overflow.
const DIGITS_MAX: usize = 24;

/// Parses a number. Text such as `inf` is not a number.
pub(crate) fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_numeric = text.ends_with(|last: char| last.is_ascii_digit() || last == '.');
    let number: f64 = text.parse().ok().filter(|_| is_numeric)?;
    number.is_finite().then_some(number)
}

/// Compares values: numbers as numbers, everything else as text. Numbers are less than text.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    match (parse_number(a), parse_number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// A sum that is exact as long as all numbers are decimal numbers of a usual size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    /// The exact sum in units of the last of `PLACES_MAX` decimal places. `None` if a number did not fit.
    exact: Option<i128>,
    rounded: f64,
    /// The greatest number of decimal places of a number.
    places: usize,
    count: u64,
}

impl Sum {
    pub(crate) fn new() -> Self {
        Self {
            exact: Some(0),
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, text: &str, value: f64) {
        self.count += 1;
        self.rounded += value;
        let Some((units, places)) = parse_decimal(text.trim()) else {
            self.exact = None;
            return;
        };
        self.places = self.places.max(places);
        self.exact = self.exact.and_then(|sum| sum.checked_add(units));
    }

    /// Formats the sum with the decimal places of its numbers.
    pub(crate) fn total(&self) -> String {
        let Some(units) = self.exact else {
            return self.rounded.to_string();
        };
        let sign = if units < 0 { "-" } else { "" };
        let digits = format!("{:0>width$}", units.unsigned_abs(), width = PLACES_MAX + 1);
        let (integer, fraction) = digits.split_at(digits.len() - PLACES_MAX);
        match self.places {
            0 => format!("{sign}{integer}"),
            places => format!("{sign}{integer}.{}", &fraction[..places]),
        }
    }

    /// Formats the mean, or an empty text without numbers.
    pub(crate) fn mean(&self) -> String {
        if self.count == 0 {
            return String::new();
        }
        let total = self.total().parse().unwrap_or(self.rounded);
        (total / self.count as f64).to_string()
    }
}

/// Reads a decimal number as units of the last of `PLACES_MAX` places, and its own number of places.
fn parse_decimal(text: &str) -> Option<(i128, usize)> {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_short = fraction.len() <= PLACES_MAX && integer.len() <= DIGITS_MAX - PLACES_MAX;
    if !is_short || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let units = format!("{integer}{fraction:0<PLACES_MAX$}").parse().ok()?;
    Some((units, fraction.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(texts: &[&str]) -> Sum {
        let mut sum = Sum::new();
        for text in texts {
            sum.add(text, parse_number(text).unwrap_or_default());
        }
        sum
    }

    #[test]
    fn sums_of_decimal_numbers_are_exact() {
        assert_eq!(sum(&["0.1", "0.2"]).total(), "0.3");
        assert_eq!(sum(&["-1.50", "1", "-0.25"]).total(), "-0.75");
        assert_eq!(sum(&["12", "30"]).total(), "42");
        assert_eq!(sum(&["1", "2"]).mean(), "1.5");
        assert_eq!(sum(&[]).mean(), "");
        assert_eq!(sum(&["1e3", "1"]).total(), "1001");
    }

    #[test]
    fn numbers_are_compared_as_numbers_and_words_are_text() {
        assert_eq!(compare("9", "10"), Ordering::Less);
        assert_eq!(compare("a", "b"), Ordering::Less);
        assert_eq!(compare("1.0", "1"), Ordering::Equal);
        for text in ["inf", "NaN", "", "1a", "infinity"] {
            assert_eq!(parse_number(text), None, "{text}");
        }
    }
}
