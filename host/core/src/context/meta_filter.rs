//! Exchange of context values with servers and clients, in the field `_meta` of the Model Context Protocol (MCP).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::ToolContext;

/// A function that receives all values and returns the values that pass the filter. The function may change keys and values.
type CustomFilter = dyn Fn(&Map<String, Value>) -> Map<String, Value> + Send + Sync;

/// A filter for the values of a [`ToolContext`] that are sent to an MCP server, and for the values that an MCP client sends.
///
/// The default filter passes no values: a context may contain tenants and tokens, which must not reach an untrusted server.
///
/// ```
/// use toolwit_core::{MetaFilter, ToolContext};
///
/// let context = ToolContext::new().with("tenant", "acme").with("token", "secret");
/// assert!(MetaFilter::default().outgoing(&context).is_empty());
/// let passed = MetaFilter::allow(["tenant"]).outgoing(&context);
/// assert_eq!(passed.keys().collect::<Vec<_>>(), ["tenant"]);
/// ```
#[derive(Clone, Default)]
pub struct MetaFilter(FilterRule);

#[derive(Clone, Default)]
enum FilterRule {
    #[default]
    Nothing,
    Everything,
    Allow(BTreeSet<String>),
    Deny(BTreeSet<String>),
    Custom(Arc<CustomFilter>),
}

impl MetaFilter {
    /// Creates a filter that passes no values.
    #[must_use]
    pub fn nothing() -> Self {
        Self(FilterRule::Nothing)
    }

    /// Creates a filter that passes all values, for a trusted server.
    #[must_use]
    pub fn pass_through() -> Self {
        Self(FilterRule::Everything)
    }

    /// Creates a filter that passes only the values with these keys.
    #[must_use]
    pub fn allow<K: Into<String>>(keys: impl IntoIterator<Item = K>) -> Self {
        Self(FilterRule::Allow(keys.into_iter().map(Into::into).collect()))
    }

    /// Creates a filter that passes all values except those with these keys.
    #[must_use]
    pub fn deny<K: Into<String>>(keys: impl IntoIterator<Item = K>) -> Self {
        Self(FilterRule::Deny(keys.into_iter().map(Into::into).collect()))
    }

    /// Creates a filter that passes the values that a function returns.
    #[must_use]
    pub fn custom(convert: impl Fn(&Map<String, Value>) -> Map<String, Value> + Send + Sync + 'static) -> Self {
        Self(FilterRule::Custom(Arc::new(convert)))
    }

    /// Returns the default filter for a server: it passes all values if the server is trusted, otherwise none.
    #[must_use]
    pub fn for_server(is_trusted: bool) -> Self {
        if is_trusted {
            Self::pass_through()
        } else {
            Self::nothing()
        }
    }

    /// Returns the values of a context that pass the filter, to send with a call.
    #[must_use]
    pub fn outgoing(&self, context: &ToolContext) -> Map<String, Value> {
        let values = context
            .keys()
            .filter_map(|key| Some((key.to_owned(), context.get(key)?.clone())));
        self.filter(values.collect())
    }

    /// Creates a context from the values of a client that pass the filter.
    #[must_use]
    pub fn incoming(&self, meta: &Map<String, Value>) -> ToolContext {
        let values = self.filter(meta.clone()).into_iter();
        values.fold(ToolContext::new(), |context, (key, value)| context.with(key, value))
    }

    fn filter(&self, mut values: Map<String, Value>) -> Map<String, Value> {
        match &self.0 {
            FilterRule::Nothing => values.clear(),
            FilterRule::Everything => {}
            FilterRule::Allow(keys) => values.retain(|key, _| keys.contains(key)),
            FilterRule::Deny(keys) => values.retain(|key, _| !keys.contains(key)),
            FilterRule::Custom(convert) => return convert(&values),
        }
        values
    }
}

impl fmt::Debug for MetaFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            FilterRule::Nothing => "nothing",
            FilterRule::Everything => "pass through",
            FilterRule::Allow(_) => "allow",
            FilterRule::Deny(_) => "deny",
            FilterRule::Custom(_) => "custom",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keys(meta: &Map<String, Value>) -> Vec<&str> {
        meta.keys().map(String::as_str).collect()
    }

    // accept: 90
    #[test]
    fn filter_selects_the_values_that_a_server_receives() {
        let context = ToolContext::new().with("tenant", "acme").with("token", "hunter2");
        assert!(MetaFilter::default().outgoing(&context).is_empty());
        assert!(MetaFilter::for_server(false).outgoing(&context).is_empty());
        assert_eq!(
            keys(&MetaFilter::for_server(true).outgoing(&context)),
            ["tenant", "token"]
        );
        assert_eq!(
            keys(&MetaFilter::allow(["tenant", "none"]).outgoing(&context)),
            ["tenant"]
        );
        assert_eq!(keys(&MetaFilter::deny(["token"]).outgoing(&context)), ["tenant"]);
        let renamed = MetaFilter::custom(|values| Map::from_iter([("org".to_owned(), values["tenant"].clone())]));
        assert_eq!(keys(&renamed.outgoing(&context)), ["org"]);
    }

    // accept: 146
    #[test]
    fn context_of_a_client_has_only_the_allowed_values() {
        let meta = Map::from_iter([("tenant".to_owned(), json!("acme")), ("admin".to_owned(), json!(true))]);
        let context = MetaFilter::allow(["tenant"]).incoming(&meta);
        assert_eq!((context.text("tenant"), context.get("admin")), (Some("acme"), None));
        assert_eq!(MetaFilter::default().incoming(&meta).keys().count(), 0);
    }
}
