//! Headers of requests that the user adds.

use reqwest::header::{HeaderName, HeaderValue};

use super::secret::Secret;
use toolwit_agent::model::ModelError;

/// Headers that determine the form of a request. They cannot be set.
const FIXED_HEADERS: [&str; 6] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
];

/// A header of requests that the user adds. Its value can be a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExtraHeader {
    pub(crate) name: String,
    pub(crate) value: Secret,
}

impl ExtraHeader {
    /// Returns the name and the value.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] if the name or the value is not valid, or the header cannot be set.
    pub(super) fn name_and_value(&self) -> Result<(HeaderName, HeaderValue), ModelError> {
        let invalid = |problem: &str| ModelError::Configuration {
            message: format!("the header `{}` {problem}", self.name),
            suggestion: "use a header such as `x-team: blue`".to_owned(),
        };
        let name = HeaderName::try_from(&self.name).map_err(|_| invalid("does not have a valid name"))?;
        if FIXED_HEADERS.contains(&name.as_str()) || name == "host" {
            return Err(invalid("cannot be set"));
        }
        let value = HeaderValue::from_str(self.value.expose());
        let mut value = value.map_err(|_| invalid("has a value with characters that are not allowed"))?;
        value.set_sensitive(true);
        Ok((name, value))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn invalid_and_fixed_headers_are_refused_without_showing_their_values() {
        let parse = |name: &str, value: &str| {
            let (name, value) = (name.to_owned(), Secret::new(value));
            ExtraHeader { name, value }.name_and_value()
        };
        assert_eq!(parse("X-Team", "blue").unwrap().0, "x-team");
        for (name, value) in [
            ("x y", "secret"),
            ("", "secret"),
            ("Host", "secret"),
            ("content-length", "1"),
            ("x", "secret\n1"),
        ] {
            let error = parse(name, value).unwrap_err();
            assert!(!format!("{error:?}").contains("secret"), "{error}");
        }
    }
}
