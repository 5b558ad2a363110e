//! Approval of calls: a policy, the people or services that answer, and the answers that are remembered.

mod approvals;
mod approver;
mod call_chain;
mod call_guard;
mod gate;
mod memory;
mod pattern;
mod policy;
mod question;
mod question_queue;
mod request;
mod wall_clock;

pub use approvals::{ApprovalObserver, Approvals, DecidedCall};
pub use approver::Approver;
pub use call_chain::CallChain;
pub use call_guard::{CallGuard, PermittedCall, StartingCall};
pub use gate::ApprovalGate;
pub use memory::{ApprovalMemory, ApprovalStore, RememberedAnswer, RememberedArguments};
pub use pattern::{ArgumentPattern, ToolPattern};
pub use policy::{ApprovalMode, ApprovalPolicy, ApprovalRule, EffectRule, UnknownApprovalMode};
pub use request::{Approval, ApprovalAnswer, ApprovalBasis, ApprovalDecision, ApprovalRequest, ApprovalScope};
pub use wall_clock::{StoppedClock, WallClock};
