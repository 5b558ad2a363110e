//! Approval of calls by the user of a client.

mod approver;
mod decision;
mod form;

pub(crate) use approver::ClientApprover;
pub(crate) use decision::UserDecision;
