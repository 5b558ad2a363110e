//! The approvals of a run.

use std::path::PathBuf;
use std::sync::Arc;

use super::RunProgress;
use crate::approval::{AnswerFile, TerminalApprover};
use crate::input::approvals::can_ask;
use crate::input::configuration::data_path;
use toolwit::agent::StartedReplay;
use toolwit::tool::{Approval, ApprovalMemory, ApprovalPolicy, ApprovalRequest, Approvals, Approver};

/// Returns the path of the answers that are valid in later runs, if there is a data directory.
pub(super) fn answer_file() -> Option<PathBuf> {
    data_path("approvals.json")
}

/// Returns the approvals of a run: a person at the terminal, if there is one, and the answers of earlier runs.
pub(super) fn approvals(policy: ApprovalPolicy, progress: &Arc<RunProgress>) -> Approvals {
    let memory = match answer_file() {
        Some(path) => ApprovalMemory::stored_in(Arc::new(AnswerFile::new(path))),
        None => ApprovalMemory::new(),
    };
    let approvals = Approvals::new(policy).with_memory(memory);
    if can_ask() {
        approvals.with_approver(TerminalApprover::new(progress.clone()))
    } else {
        approvals
    }
}

/// Returns the approvals of a fork: the recorded decisions before it, a person at the terminal after it.
pub(super) fn forked_approvals(
    policy: ApprovalPolicy,
    progress: &Arc<RunProgress>,
    replay: &StartedReplay,
) -> Approvals {
    let approver: Arc<dyn Approver> = if can_ask() {
        Arc::new(TerminalApprover::new(progress.clone()))
    } else {
        Arc::new(|_: &ApprovalRequest| Approval::Unanswered {
            reason: "nobody can be asked".to_owned(),
        })
    };
    Approvals::new(policy).with_approver(replay.approver(approver))
}
