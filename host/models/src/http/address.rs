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
    /// Creates the address of an endpoint by appending its path to the base URL, unless the base URL already ends with this path.
    /// If the path starts with a version, such as `v1`, and the base URL ends with a version, the version of the path is omitted.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] for a base URL that is invalid, has a scheme other than `http` and `https`, or has a user
    /// name, a password or a fragment.
    pub(crate) fn from_base_url(base_url: &str, path: &str) -> Result<Self, ModelError> {
        let mut url =
            Url::parse(base_url.trim()).map_err(|error| invalid_base_url(&format!("is not a URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid_base_url(&format!(
                "has the scheme `{}`, not `https` or `http`",
                url.scheme()
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid_base_url(
                "contains a user name or a password, which logs would show: set the key separately",
            ));
        }
        if url.fragment().is_some() {
            return Err(invalid_base_url("ends with a fragment (`#…`)"));
        }
        let base_path = url.path().trim_end_matches('/').to_owned();
        let has_version = base_path.rsplit('/').next().is_some_and(is_version);
        let path = match path.split_once('/') {
            Some((version, versionless)) if has_version && is_version(version) => versionless,
            _ => path,
        };
        let suffix = format!("/{path}");
        if base_path.ends_with(&suffix) {
            url.set_path(&base_path);
        } else {
            url.set_path(&format!("{base_path}{suffix}"));
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

    /// Returns the host of the URL, or an empty text if the URL has no host.
    pub(crate) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Returns whether the host is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(&self.0)
    }

    /// Checks that a key may be sent to this address.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] for a plain HTTP address of another machine, unless `plain_http` allows any host.
    pub(super) fn check_key_allowed(&self, plain_http: PlainHttp) -> Result<(), ModelError> {
        if self.is_encrypted() || self.is_loopback() || plain_http == PlainHttp::AnyHost {
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

fn invalid_base_url(problem: &str) -> ModelError {
    ModelError::Configuration {
        message: format!("the base URL {problem}"),
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
        let url_of = |base: &str| EndpointAddress::from_base_url(base, PATH).unwrap().url().to_string();
        assert_eq!(url_of("https://h/v1"), "https://h/v1/chat/completions");
        assert_eq!(url_of(" http://h:81/ "), "http://h:81/chat/completions");
        assert_eq!(
            url_of("https://h/v1/chat/completions/"),
            "https://h/v1/chat/completions"
        );
        assert_eq!(
            url_of("https://h/x?api-version=1"),
            "https://h/x/chat/completions?api-version=1"
        );
        let versioned = |base: &str| {
            EndpointAddress::from_base_url(base, "v1/messages")
                .unwrap()
                .url()
                .to_string()
        };
        for base in ["https://h", "https://h/v1", "https://h/v1/messages"] {
            assert_eq!(versioned(base), "https://h/v1/messages", "{base}");
        }
        assert_eq!(versioned("https://h/v1beta/"), "https://h/v1beta/messages");
        assert_eq!(versioned("https://h/x"), "https://h/x/v1/messages");
    }

    #[test]
    fn an_invalid_base_url_is_refused_without_showing_its_password() {
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
            let error = EndpointAddress::from_base_url(base, PATH).unwrap_err();
            assert!(
                matches!(&error, ModelError::Configuration { .. }) && !format!("{error:?}").contains("hunter2"),
                "{base}"
            );
        }
    }

    #[test]
    fn a_key_is_sent_to_other_machines_only_over_https_unless_any_host_is_allowed() {
        let check = |base: &str, plain_http| {
            EndpointAddress::from_base_url(base, PATH)
                .unwrap()
                .check_key_allowed(plain_http)
        };
        let allowed = [
            "https://h",
            "http://localhost:1",
            "http://127.0.0.2",
            "http://[::1]:1",
            "http://[::ffff:127.0.0.1]",
        ];
        for base in allowed {
            assert_eq!(check(base, PlainHttp::LoopbackOnly), Ok(()), "{base}");
        }
        for base in [
            "http://h",
            "http://10.0.0.1",
            "http://0.0.0.0",
            "http://localhost.h",
            "http://a.localhost",
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
