//! Runs the test cases of a suite.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::{TestCase, TestSuite};
use crate::host::{Toolwit, ToolwitBuilder};
use toolwit_core::{Error, ToolContext};

/// The outcome of a test case.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaseOutcome {
    /// The name of the case.
    pub name: String,
    /// The reason why the case failed, with the called tool. `None` if the case passed.
    pub failure: Option<String>,
    /// The duration of the calls. It includes the compilation of the plugin, unless an earlier case with the same grants has
    /// compiled it.
    pub wall: Duration,
}

/// Runs the cases of a suite, one after the other.
///
/// ```no_run
/// use toolwit::testing::{CaseRunner, TestSuite};
/// use toolwit::{ToolContext, Toolwit};
///
/// # async fn example() -> Result<(), toolwit::Error> {
/// let suite = TestSuite::read("tests.toml".as_ref(), "weather")?;
/// let host = || Ok(Toolwit::builder().plugins("weather.wasm"));
/// let mut runner = CaseRunner::new(host, ToolContext::new());
/// for case in &suite.cases {
///     let outcome = runner.run(case).await?;
///     println!("{}: {}", outcome.name, outcome.failure.as_deref().unwrap_or("ok"));
/// }
/// # Ok(())
/// # }
/// ```
pub struct CaseRunner<F> {
    new_builder: F,
    context: ToolContext,
    are_outside_grants_allowed: bool,
    /// A host for each set of grants, by [`TestCase::grants_text`].
    hosts: HashMap<String, Toolwit>,
}

impl<F> CaseRunner<F>
where
    F: Fn() -> Result<ToolwitBuilder, Error>,
{
    /// Creates a runner. `new_builder` returns a builder of a host that has the plugin and no grants. `context` is the
    /// context of each call.
    pub fn new(new_builder: F, context: ToolContext) -> Self {
        Self {
            new_builder,
            context,
            are_outside_grants_allowed: false,
            hosts: HashMap::new(),
        }
    }

    /// Allows grants of cases that reach outside of the directory of the file; see
    /// [`TestSuite::require_grants_inside`].
    #[must_use]
    pub fn allow_outside_grants(mut self) -> Self {
        self.are_outside_grants_allowed = true;
        self
    }

    /// Runs a case in a new conversation. The case ends at the first call whose outcome does not meet its expectation.
    ///
    /// # Errors
    /// - if the host cannot be built, for example because of invalid grants
    /// - if a grant reaches outside of the directory of the file, unless [`CaseRunner::allow_outside_grants`] was called
    pub async fn run(&mut self, case: &TestCase) -> Result<CaseOutcome, Error> {
        let host = self.host_for(case).await?;
        let start = Instant::now();
        let failure = self.run_calls(&host, case).await;
        Ok(CaseOutcome {
            name: case.name.clone(),
            failure,
            wall: start.elapsed(),
        })
    }

    /// Returns the host with the grants of a case. Builds the host for the first case with these grants.
    async fn host_for(&mut self, case: &TestCase) -> Result<Toolwit, Error> {
        if let Some(host) = self.hosts.get(&case.grants_text) {
            return Ok(host.clone());
        }
        // The grants are checked again for each host. In an earlier case, a plugin that can write to the directory of the
        // file could have put a link in the place of a directory that this case grants.
        if !self.are_outside_grants_allowed {
            case.require_grants_inside().map_err(|error| {
                error.with_suggestion("remove them, or allow them with `CaseRunner::allow_outside_grants`")
            })?;
        }
        let mut builder = (self.new_builder)()?;
        for grant in &case.grants {
            builder = builder.grant(grant.clone());
        }
        let host = builder.build().await?;
        self.hosts.insert(case.grants_text.clone(), host.clone());
        Ok(host)
    }

    /// Runs the calls of a case until one of them does not meet its expectation. Returns the reason of the failure, or
    /// `None` if the case passed.
    async fn run_calls(&self, host: &Toolwit, case: &TestCase) -> Option<String> {
        let mut session = host.call_session(self.context.clone());
        let has_single_call = case.calls.len() == 1;
        for (index, call) in case.calls.iter().enumerate() {
            let call_label = if has_single_call {
                format!("`{}`", call.tool)
            } else {
                format!("call {}, `{}`", index + 1, call.tool)
            };
            let tool = match session.find(&call.tool) {
                Ok(tool) => tool,
                Err(error) => {
                    let error = Error::from(error);
                    let hint = error.suggestion.as_ref().map(|hint| format!("; {hint}"));
                    return Some(format!("{call_label}: {error}{}", hint.unwrap_or_default()));
                }
            };
            let outcome = session.call(&tool, call.arguments.clone()).await;
            if let Some(mismatch) = call.expectation.mismatch(&outcome.result) {
                return Some(format!("{call_label}: {mismatch}"));
            }
        }
        None
    }
}

impl TestSuite {
    /// Keeps the cases whose name contains a text.
    pub fn retain_named(&mut self, text: &str) {
        self.cases.retain(|case| case.name.contains(text));
    }
}
