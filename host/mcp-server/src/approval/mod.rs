//! Approval of calls by the user of a client.

mod approver;
mod form;

pub(crate) use approver::ClientApprover;
