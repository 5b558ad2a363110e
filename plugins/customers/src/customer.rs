//! Customers, and how they are found by name.

/// Maximum number of similar names that are suggested for an unknown name.
const NEAR_NAMES_MAX: usize = 3;

/// Minimum similarity (0 to 1) of a suggested name.
const NEAR_SIMILARITY_MIN: f64 = 0.75;

/// A customer of the shop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Customer {
    /// The id, such as `c-123`.
    pub id: &'static str,
    /// The full name.
    pub name: &'static str,
    /// The e-mail address.
    pub email: &'static str,
    /// The city to which goods are shipped.
    pub city: &'static str,
    /// The date of the first contact, as `YYYY-MM-DD`.
    pub since: &'static str,
}

/// The reason why a search did not return exactly one customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchError<'a> {
    /// The name is empty.
    EmptyName,
    /// No customer has this name. Contains the most similar names.
    NotFound(Vec<&'a str>),
    /// Several customers match the name.
    Ambiguous(Vec<&'a Customer>),
}

/// Finds the customer with this full name, else the only one whose name contains it.
///
/// # Errors
///
/// [`SearchError`], with similar names or the matching customers for the next attempt.
pub fn search<'a>(customers: &'a [Customer], name: &str) -> Result<&'a Customer, SearchError<'a>> {
    let wanted = normalised(name);
    if wanted.is_empty() {
        return Err(SearchError::EmptyName);
    }
    let mut matches: Vec<_> = customers
        .iter()
        .filter(|customer| normalised(customer.name) == wanted)
        .collect();
    if matches.is_empty() {
        matches = customers
            .iter()
            .filter(|customer| normalised(customer.name).contains(&wanted))
            .collect();
    }
    match matches.as_slice() {
        [] => Err(SearchError::NotFound(similar_names(customers, &wanted))),
        [customer] => Ok(customer),
        _ => Err(SearchError::Ambiguous(matches)),
    }
}

/// Finds all customers whose name, e-mail address or city contains the text.
pub fn find<'a>(customers: &'a [Customer], query: &str) -> Vec<&'a Customer> {
    let wanted = normalised(query);
    let is_match = |customer: &&Customer| {
        [customer.name, customer.email, customer.city]
            .into_iter()
            .any(|field| normalised(field).contains(&wanted))
    };
    customers.iter().filter(is_match).collect()
}

fn similar_names<'a>(customers: &'a [Customer], wanted: &str) -> Vec<&'a str> {
    let mut names: Vec<_> = customers
        .iter()
        .map(|customer| (strsim::jaro_winkler(&normalised(customer.name), wanted), customer.name))
        .filter(|(similarity, _)| *similarity >= NEAR_SIMILARITY_MIN)
        .collect();
    names.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    names.into_iter().take(NEAR_NAMES_MAX).map(|(_, name)| name).collect()
}

/// Normalises a name for comparison: lower case, single spaces, without accents.
fn normalised(text: &str) -> String {
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.to_lowercase().chars().map(without_accent).collect())
        .collect();
    words.join(" ")
}

fn without_accent(letter: char) -> char {
    match letter {
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' => 'a',
        'ç' => 'c',
        'è' | 'é' | 'ê' | 'ë' => 'e',
        'ì' | 'í' | 'î' | 'ï' => 'i',
        'ñ' => 'n',
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' => 'o',
        'ù' | 'ú' | 'û' | 'ü' => 'u',
        'ý' | 'ÿ' => 'y',
        '’' => '\'',
        letter => letter,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::seed;

    fn names<'a>(found: impl IntoIterator<Item = &'a Customer>) -> Vec<&'a str> {
        found.into_iter().map(|customer| customer.name).collect()
    }

    #[test]
    fn john_smith_is_found_by_his_name_in_any_case() {
        let customers = seed::customers();
        for name in ["John Smith", "  john   SMITH ", "john"] {
            assert_eq!(search(&customers, name).unwrap().id, "c-123", "{name}");
        }
    }

    #[test]
    fn a_name_of_several_customers_is_ambiguous() {
        let customers = seed::customers();
        let Err(SearchError::Ambiguous(smiths)) = search(&customers, "smith") else {
            panic!("not ambiguous")
        };
        assert_eq!(names(smiths), ["John Smith", "Mary Smith"]);
    }

    #[test]
    fn a_full_name_takes_precedence_over_names_that_contain_it() {
        let customer = |id, name| Customer {
            id,
            name,
            email: "",
            city: "",
            since: "",
        };
        let customers = [customer("1", "Ann Lee"), customer("2", "Joann Lee")];
        assert_eq!(search(&customers, "ann lee").unwrap().id, "1");
    }

    #[test]
    fn a_misspelt_name_is_answered_with_similar_ones() {
        let customers = seed::customers();
        let Err(SearchError::NotFound(similar_names)) = search(&customers, "Jon Smyth") else {
            panic!("found")
        };
        assert_eq!(similar_names.first(), Some(&"John Smith"));
        assert_eq!(search(&customers, "zzzz"), Err(SearchError::NotFound(vec![])));
        assert_eq!(search(&customers, " "), Err(SearchError::EmptyName));
    }

    #[test]
    fn accents_do_not_matter() {
        let customers = seed::customers();
        assert_eq!(search(&customers, "bjorn lindqvist").unwrap().name, "Björn Lindqvist");
        assert_eq!(names(find(&customers, "goteborg")), ["Björn Lindqvist"]);
    }

    #[test]
    fn find_searches_names_addresses_and_cities() {
        let customers = seed::customers();
        assert_eq!(names(find(&customers, "PORTLAND")), ["John Smith", "Mary Smith"]);
        assert_eq!(names(find(&customers, "liam.obrien@")), ["Liam O'Brien"]);
        assert_eq!(find(&customers, "").len(), customers.len());
    }
}
