//! The choice of the tools of a server.

use regex::Regex;

use toolwit_core::{Error, ErrorKind, Phase};

/// Chooses the tools of a server by their names. By default, all tools are chosen.
///
/// ```
/// use toolwit_mcp_client::ToolFilter;
///
/// let readers = ToolFilter::parse(["^get_", "^list_"], ["secret"])?;
/// assert!(readers.accepts("get_issue") && !readers.accepts("get_secret") && !readers.accepts("delete_issue"));
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ToolFilter {
    include: Vec<Regex>,
    exclude: Vec<Regex>,
}

impl ToolFilter {
    /// Creates a filter from regular expressions. A tool is chosen if its name matches at least one of `include` and
    /// none of `exclude`. An empty `include` matches every name.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an invalid regular expression.
    pub fn parse<'p>(
        include: impl IntoIterator<Item = &'p str>,
        exclude: impl IntoIterator<Item = &'p str>,
    ) -> Result<Self, Error> {
        let compile = |text: &str| {
            Regex::new(text).map_err(|error| {
                let message = format!("`{text}` is not a valid pattern for tools: {error}");
                Error::new(ErrorKind::Configuration, Phase::Registry, message)
            })
        };
        Ok(Self {
            include: include.into_iter().map(compile).collect::<Result<_, _>>()?,
            exclude: exclude.into_iter().map(compile).collect::<Result<_, _>>()?,
        })
    }

    /// Returns whether the tool with this name is chosen.
    #[must_use]
    pub fn accepts(&self, name: &str) -> bool {
        let matches_any = |patterns: &[Regex]| patterns.iter().any(|pattern| pattern.is_match(name));
        (self.include.is_empty() || matches_any(&self.include)) && !matches_any(&self.exclude)
    }
}
