//! Options for the approval of calls.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::configuration::configuration_file;
use super::environment::variable;
use super::host_files::require_not_written_by_plugin;
use super::paths::absolute_if_set;
use toolwit::registry::OperatorPolicy;
use toolwit::tool::{ApprovalMode, ApprovalPolicy};
use toolwit::{Error, ErrorKind, Phase};

/// The environment variable with the path of the policy file. The option `--policy` takes precedence.
const VARIABLE: &str = "TOOLWIT_POLICY";

/// Options for the approval of calls.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Approval of calls")]
pub(crate) struct ApprovalFlags {
    /// When a call needs your approval: never, first-time, writes, always or deny [default: that of the policy file, or
    /// writes]
    #[arg(long, value_name = "MODE")]
    approve: Option<ApprovalMode>,
    /// Path to the policy file [env: TOOLWIT_POLICY] [default: toolwit/policy.toml in the configuration directory]
    #[arg(long = "policy", value_name = "FILE")]
    policy_file: Option<PathBuf>,
}

impl ApprovalFlags {
    /// Returns whether `--approve never` is set, which allows every call without a question.
    pub(crate) fn allows_every_call(&self) -> bool {
        self.approve == Some(ApprovalMode::Never)
    }

    /// Returns the policy: that of the file, with the mode of the option.
    ///
    /// # Errors
    /// If the file is invalid, or was named and does not exist.
    pub(crate) fn policy(&self) -> Result<ApprovalPolicy, Error> {
        Ok(self.operator_policy()?.approval_policy(self.approve))
    }

    /// Removes and returns the mode of the option, if it requires fewer approvals than the policy file alone.
    ///
    /// # Errors
    /// As [`policy`](Self::policy).
    pub(crate) fn remove_weaker_mode(&mut self) -> Result<Option<ApprovalMode>, Error> {
        if self.approve.is_none() {
            return Ok(None);
        }
        let policy = self.operator_policy()?;
        let is_weaker = policy
            .approval_policy(self.approve)
            .is_weaker_than(&policy.approval_policy(None));
        Ok(self.approve.take_if(|_| is_weaker))
    }

    /// Returns the mode of the option, if it is set.
    pub(crate) fn mode(&self) -> Option<ApprovalMode> {
        self.approve
    }

    /// Returns the policy file that the options or the environment name, if any.
    pub(crate) fn named_file(&self) -> Option<PathBuf> {
        self.policy_file
            .clone()
            .or_else(|| variable(VARIABLE).map(PathBuf::from))
    }

    /// Returns the flags for use in another directory: with an absolute path. If no option names the policy file, the path
    /// from its environment variable is filled in.
    pub(crate) fn for_other_directory(&self) -> Result<Self, Error> {
        Ok(Self {
            approve: self.approve,
            policy_file: absolute_if_set(self.named_file())?,
        })
    }

    fn operator_policy(&self) -> Result<OperatorPolicy, Error> {
        let policy = match &self.named_file() {
            Some(path) => {
                require_not_written_by_plugin(path)?;
                Some(OperatorPolicy::read(path)?.ok_or_else(|| {
                    let message = format!("the policy file {} does not exist", path.display());
                    Error::new(ErrorKind::Configuration, Phase::Registry, message)
                })?)
            }
            None => match configuration_file(OperatorPolicy::FILE_NAME) {
                Ok(path) => OperatorPolicy::read(&path)?,
                Err(_) => None,
            },
        };
        Ok(policy.unwrap_or_default())
    }
}

/// Returns whether a person can be asked: standard input and standard error are terminals.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
