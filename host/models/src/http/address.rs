//! The URL of an endpoint, checked before a key is sent there.

use reqwest::Url;

use toolwit_agent::model::ModelError;
use toolwit_http::is_loopback;

/// Whether a key may be sent over plain HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainHttp {
    /// Only to a loopback address.
    #[default]
    LoopbackOnly,
    /// To any host. Anyone on the network path can read the key and the conversation.
    AnyHost,
}

/// The URL of a provider's endpoint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EndpointAddress(Url);

impl EndpointAddress {
    /// Creates the address of an endpoint: the base URL with the path of the endpoint appended, unless the URL already ends
    /// with it. A version at the beginning of the path, such as `v1`, is left out if the URL ends with a version.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] for a base URL that is invalid, has a scheme other than `http` and `https`, or has a user
    /// name, a password or a fragment.
    pub(crate) fn below(base_url: &str, path: &str) -> Result<Self, ModelError> {
        let mut url = Url::parse(base_url.trim()).map_err(|error| invalid(&format!("is not a URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(&format!(
                "has the scheme `{}`, not `https` or `http`",
                url.scheme()
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(
                "contains a user name or a password, which logs would show: set the key separately",
            ));
        }
        if url.fragment().is_some() {
            return Err(invalid("ends with a fragment (`#…`)"));
        }
        let trimmed = url.path().trim_end_matches('/').to_owned();
        let has_version = trimmed.rsplit('/').next().is_some_and(is_version);
        let path = match path.split_once('/') {
            Some((version, rest)) if has_version && is_version(version) => rest,
            _ => path,
        };
        let suffix = format!("/{path}");
        if trimmed.ends_with(&suffix) {
            url.set_path(&trimmed);
        } else {
            url.set_path(&format!("{trimmed}{suffix}"));
        }
        Ok(Self(url))
    }

    /// Adds a parameter to the query.
    pub(crate) fn with_query(mut self, name: &str, value: &str) -> Self {
        self.0.query_pairs_mut().append_pair(name, value);
        self
    }

    pub(super) fn url(&self) -> &Url {
        &self.0
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Returns the host of the URL, or an empty text if it has none.
    pub(crate) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Returns whether the host is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.0)
    }

    /// Checks that a key may be sent over the connection.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] if others could read the key.
    pub(super) fn check_key(&self, plain: PlainHttp) -> Result<(), ModelError> {
        if self.is_encrypted() || self.is_loopback() || plain == PlainHttp::AnyHost {
            return Ok(());
        }
        Err(ModelError::Configuration {
            message: format!(
                "the key would be sent to `{}` over plain HTTP, where others can read it",
                self.host()
            ),
            suggestion: "use an `https` base URL, or remove the key".to_owned(),
        })
    }
}

/// Returns whether a segment of a path is a version, such as `v1` or `v1beta`.
fn is_version(segment: &str) -> bool {
    let digits = segment.strip_prefix('v').unwrap_or_default();
    digits.starts_with(|first: char| first.is_ascii_digit())
}

fn invalid(why: &str) -> ModelError {
    ModelError::Configuration {
        message: format!("the base URL {why}"),
        suggestion: "use a URL such as `https://api.openai.com/v1` or `http://127.0.0.1:8080/v1`".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PATH: &str = "chat/completions";

    #[test]
    fn the_path_is_appended_once_and_a_query_is_kept() {
        let complete = |base: &str| EndpointAddress::below(base, PATH).unwrap().url().to_string();
        assert_eq!(complete("https://h/v1"), "https://h/v1/chat/completions");
        assert_eq!(complete(" http://h:81/ "), "http://h:81/chat/completions");
        assert_eq!(
            complete("https://h/v1/chat/completions/"),
            "https://h/v1/chat/completions"
        );
        assert_eq!(
            complete("https://h/x?api-version=1"),
            "https://h/x/chat/completions?api-version=1"
        );
        let versioned = |base: &str| EndpointAddress::below(base, "v1/messages").unwrap().url().to_string();
        for base in ["https://h", "https://h/v1", "https://h/v1/messages"] {
            assert_eq!(versioned(base), "https://h/v1/messages", "{base}");
        }
        assert_eq!(versioned("https://h/v1beta/"), "https://h/v1beta/messages");
        assert_eq!(versioned("https://h/x"), "https://h/x/v1/messages");
    }

    #[test]
    fn an_invalid_base_url_or_one_with_a_password_is_refused_without_showing_it() {
        for base in [
            "",
            "h/v1",
            "ftp://h",
            "file:///x",
            "https://u:hunter2@h/v1",
            "https://hunter2@h",
            "https://h/#x",
            "http://",
        ] {
            let error = EndpointAddress::below(base, PATH).unwrap_err();
            assert!(
                matches!(&error, ModelError::Configuration { .. }) && !format!("{error:?}").contains("hunter2"),
                "{base}"
            );
        }
    }

    #[test]
    fn a_key_is_sent_to_other_machines_only_over_https() {
        let check = |base: &str, plain| EndpointAddress::below(base, PATH).unwrap().check_key(plain);
        let allowed = [
            "https://h",
            "http://localhost:1",
            "http://127.0.0.2",
            "http://[::1]:1",
            "http://[::ffff:127.0.0.1]",
            "http://a.localhost",
        ];
        for base in allowed {
            assert_eq!(check(base, PlainHttp::LoopbackOnly), Ok(()), "{base}");
        }
        for base in [
            "http://h",
            "http://10.0.0.1",
            "http://0.0.0.0",
            "http://localhost.h",
            "http://127.0.0.1.h",
            "http://[::2]",
        ] {
            assert!(
                check(base, PlainHttp::LoopbackOnly)
                    .unwrap_err()
                    .to_string()
                    .contains("plain HTTP"),
                "{base}"
            );
            assert_eq!(check(base, PlainHttp::AnyHost), Ok(()), "{base}");
        }
    }
}
