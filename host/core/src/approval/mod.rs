//! Approval of calls: a policy, the people or services that answer, and the answers that are remembered.

mod approval_gate;
mod approvals;
mod approver;
mod call_approval;
mod call_chain;
mod call_guard;
mod pattern;
mod policy;
mod question_queue;
mod remembered_answers;
mod request;
mod wall_clock;

pub use approval_gate::ApprovalGate;
pub use approvals::{ApprovalObserver, Approvals, DecidedCall};
pub use approver::Approver;
pub use call_chain::CallChain;
pub use call_guard::{CallGuard, PermittedCall, StartingCall};
pub use pattern::{ArgumentPattern, ToolPattern};
pub use policy::{ApprovalMode, ApprovalPolicy, ApprovalRule, EffectRule, UnknownApprovalMode};
pub use remembered_answers::{ApprovalMemory, ApprovalStore, RememberedAnswer, RememberedArguments};
pub use request::{Approval, ApprovalAnswer, ApprovalBasis, ApprovalDecision, ApprovalRequest, ApprovalScope};
pub use wall_clock::{StoppedClock, WallClock};
