//! The proxy through which requests are sent to a provider.

use std::convert::Infallible;
use std::str::FromStr;

use reqwest::{NoProxy, Proxy};

use super::address::EndpointAddress;
use super::secret::Secret;
use toolwit_agent::model::ModelError;

/// The proxy through which requests are sent to a provider. The default is none.
///
/// A request to this machine is never sent through a proxy: it may carry a key without encryption.
///
/// ```
/// use toolwit_models::ModelProxy;
///
/// assert_eq!("environment".parse(), Ok(ModelProxy::Environment));
/// assert_ne!("http://proxy.example:3128".parse(), Ok(ModelProxy::None));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ModelProxy {
    /// No proxy.
    #[default]
    None,
    /// The proxy in the environment variables `HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY`, except for the hosts in `NO_PROXY`. The
    /// names can be in lower case.
    Environment,
    /// The proxy at this URL, which can contain a user name and a password.
    Url(Secret),
}

impl FromStr for ModelProxy {
    type Err = Infallible;

    /// Parses `none`, `environment` or a URL, which is checked when the client is built.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "none" => Self::None,
            "environment" => Self::Environment,
            url => Self::Url(Secret::new(url)),
        })
    }
}

impl ModelProxy {
    /// Returns the proxy for requests to an address, or `None` if they are sent directly. `read_variable` returns the value of an
    /// environment variable.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] for a URL that is not valid. The message does not contain it, because it can have a password.
    pub(super) fn for_address(
        &self,
        address: &EndpointAddress,
        read_variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Proxy>, ModelError> {
        if address.is_loopback() {
            return Ok(None);
        }
        let first_variable = |names: [&str; 4]| names.into_iter().find_map(&read_variable);
        let (url, excluded) = match self {
            Self::None => return Ok(None),
            Self::Url(url) => (Some(url.expose().to_owned()), None),
            Self::Environment => {
                let url = if address.is_encrypted() {
                    first_variable(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
                } else {
                    first_variable(["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
                };
                (url, read_variable("no_proxy").or_else(|| read_variable("NO_PROXY")))
            }
        };
        let Some(url) = url else {
            return Ok(None);
        };
        let proxy = Proxy::all(url).map_err(|_| ModelError::Configuration {
            message: "the address of the proxy is not a valid URL".to_owned(),
            suggestion: "use a URL such as `http://proxy.example:3128`".to_owned(),
        })?;
        Ok(Some(proxy.no_proxy(excluded.as_deref().and_then(NoProxy::from_string))))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn has_proxy(proxy: &ModelProxy, url: &str, variables: &[(&str, &str)]) -> Result<bool, ModelError> {
        let address = EndpointAddress::from_base_url(url, "v1").unwrap();
        let read_variable = |name: &str| {
            let mut variables = variables.iter();
            variables
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        proxy.for_address(&address, read_variable).map(|proxy| proxy.is_some())
    }

    #[test]
    fn a_proxy_is_used_only_if_it_is_named_and_never_for_this_machine() {
        let variables = [("HTTPS_PROXY", "http://proxy:1")];
        assert_eq!(
            has_proxy(&ModelProxy::None, "https://api.example", &variables),
            Ok(false)
        );
        assert_eq!(
            has_proxy(&ModelProxy::Environment, "https://api.example", &variables),
            Ok(true)
        );
        assert_eq!(
            has_proxy(&ModelProxy::Environment, "http://api.example", &variables),
            Ok(false)
        );
        assert_eq!(
            has_proxy(&ModelProxy::Environment, "https://api.example", &[]),
            Ok(false)
        );
        let named = "proxy.example:3128".parse().unwrap();
        assert_eq!(has_proxy(&named, "http://gpu-box/v1", &[]), Ok(true));
        for local in ["http://127.0.0.1:1", "https://localhost:1"] {
            assert_eq!(has_proxy(&named, local, &[]), Ok(false), "{local}");
        }
    }

    #[test]
    fn an_invalid_proxy_is_refused_without_showing_it() {
        let proxy: ModelProxy = "http://user:hunter2@[".parse().unwrap();
        let error = has_proxy(&proxy, "https://api.example", &[]).unwrap_err();
        assert!(!format!("{error:?}{proxy:?}").contains("hunter2"), "{error}");
    }
}
