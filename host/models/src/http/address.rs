//! Where a provider listens, checked before a key goes there.

use std::net::IpAddr;

use reqwest::Url;

use toolwit_agent::model::ModelError;

/// Whether a key may travel over plain HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainHttp {
    /// Only to this machine.
    #[default]
    LoopbackOnly,
    /// To any host: everybody on the way can read the key and the conversation.
    AnyHost,
}

/// The address of a provider's endpoint.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EndpointAddress(Url);

impl EndpointAddress {
    /// Takes a base URL and the path of an endpoint below it, which may be part of the base already.
    pub(crate) fn below(base_url: &str, path: &[&str]) -> Result<Self, ModelError> {
        let mut url = Url::parse(base_url.trim()).map_err(|error| wrong(&format!("is no URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(&format!(
                "has the scheme `{}`, not `https` or `http`",
                url.scheme()
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(
                "holds a user name or a password, which logs would show: give the key apart",
            ));
        }
        if url.fragment().is_some() {
            return Err(wrong("ends with a fragment (`#…`)"));
        }
        let trimmed = url.path().trim_end_matches('/').to_owned();
        let complete = match trimmed.ends_with(&format!("/{}", path.join("/"))) {
            true => trimmed,
            false => format!("{trimmed}/{}", path.join("/")),
        };
        url.set_path(&complete);
        Ok(Self(url))
    }

    pub(super) fn url(&self) -> &Url {
        &self.0
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Returns the host, for errors.
    pub(crate) fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Whether the provider runs on this machine.
    pub(crate) fn is_this_machine(&self) -> bool {
        let host = self.host();
        match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => host == "localhost" || host.ends_with(".localhost"),
        }
    }

    /// Refuses to send a key where it could be read on the way.
    pub(super) fn check_key(&self, plain: PlainHttp) -> Result<(), ModelError> {
        if self.is_encrypted() || self.is_this_machine() || plain == PlainHttp::AnyHost {
            return Ok(());
        }
        Err(ModelError::Configuration {
            message: format!(
                "the key would go to `{}` over plain HTTP, where others can read it",
                self.host()
            ),
            suggestion: "use an `https` base URL, or no key".to_owned(),
        })
    }
}

fn wrong(why: &str) -> ModelError {
    ModelError::Configuration {
        message: format!("the base URL {why}"),
        suggestion: "write it like `https://api.openai.com/v1` or `http://127.0.0.1:8080/v1`".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PATH: &[&str] = &["chat", "completions"];

    #[test]
    fn the_path_is_added_once_and_a_query_stays() {
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
    }

    #[test]
    fn a_base_url_that_is_none_or_holds_a_password_is_refused_without_showing_it() {
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
    fn a_key_leaves_this_machine_only_encrypted() {
        let check = |base: &str, plain| EndpointAddress::below(base, PATH).unwrap().check_key(plain);
        let fine = [
            "https://h",
            "http://localhost:1",
            "http://127.0.0.2",
            "http://[::1]:1",
            "http://[::ffff:127.0.0.1]",
            "http://a.localhost",
        ];
        for base in fine {
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
