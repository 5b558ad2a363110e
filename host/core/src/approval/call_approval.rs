//! The approval of one call.

use super::approvals::{ApprovalObserver, Approvals, DecidedCall};
use super::call_chain::CallChain;
use super::call_guard::{PermittedCall, StartingCall};
use super::policy::ApprovalMode;
use super::remembered_answers::RememberedAnswer;
use super::request::{Approval, ApprovalBasis, ApprovalDecision, ApprovalRequest, ApprovalScope, approval_digest};
use super::wall_clock::WallClock;
use crate::{Arguments, CallAccess, Error, ErrorKind, InputValidator, Phase, Tool, ToolError};

/// Maximum number of questions about one call. The approver is asked again if an edit of the arguments cannot be used, or if
/// the tool or its grant changed in the meantime.
const QUESTIONS_MAX: u32 = 5;

/// The approval of one call. Asks the approver until an answer can be used.
pub(super) struct CallApproval<'q> {
    pub(super) approvals: &'q Approvals,
    pub(super) call: &'q StartingCall<'q>,
    pub(super) observer: &'q dyn ApprovalObserver,
    /// Whether the mode is [`ApprovalMode::FirstTime`]. In this mode, an approval with the scope [`ApprovalScope::Call`] is
    /// valid for all further calls of the tool in the conversation.
    pub(super) is_first_time_mode: bool,
}

/// An answer to one question.
struct QuestionAnswer {
    approval: Approval,
    basis: ApprovalBasis,
    /// The new remembered answer, if this answer is valid for further calls.
    remembered_answer: Option<RememberedAnswer>,
}

impl QuestionAnswer {
    fn new(approval: Approval, basis: ApprovalBasis) -> Self {
        Self {
            approval,
            basis,
            remembered_answer: None,
        }
    }
}

impl CallApproval<'_> {
    /// Obtains answers to the request until an answer can be used, at most [`QUESTIONS_MAX`] times.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] if the call is denied, is not answered, or no answer can be used; [`ErrorKind::Cancelled`] if the
    /// call is cancelled.
    pub(super) async fn decide(&self, mut request: ApprovalRequest) -> Result<PermittedCall, ToolError> {
        for _ in 0..QUESTIONS_MAX {
            let QuestionAnswer {
                approval,
                basis,
                remembered_answer,
            } = self.answer_unless_cancelled(&request).await?;
            if let Approval::Edited { arguments } = &approval {
                let current_access = self
                    .approvals
                    .access(self.call.tool, &self.call.arguments, self.call.context)
                    .await;
                if approval_digest(self.call.tool.definition(), &current_access) != request.digest {
                    request = request_of(self.call, &current_access).await;
                    request.rejected_edit = Some("the tool or its grant changed while the call was edited".to_owned());
                    continue;
                }
                match self.check_edit(&request, arguments).await {
                    Ok(access) => {
                        self.report_decision(&request, &approval, basis, None)?;
                        return Ok(PermittedCall::edited(arguments.clone(), access));
                    }
                    Err(reason) => request.rejected_edit = Some(reason),
                }
                continue;
            }
            self.report_decision(&request, &approval, basis, remembered_answer.as_ref())?;
            let call = self.call;
            let current_access = self.approvals.access(call.tool, &call.arguments, call.context).await;
            if approval_digest(call.tool.definition(), &current_access) == request.digest {
                return Ok(PermittedCall::unchanged(call.arguments.clone(), current_access));
            }
            // The tool or its grant changed while the call waited for an answer, so the approval does not apply to the changed
            // call.
            request = request_of(call, &current_access).await;
        }
        Err(denial(
            self.call,
            &format!("none of {QUESTIONS_MAX} answers could be used"),
        ))
    }

    /// Returns the [answer](Self::answer) to a request, or an error as soon as the call is cancelled.
    async fn answer_unless_cancelled(&self, request: &ApprovalRequest) -> Result<QuestionAnswer, ToolError> {
        tokio::select! {
            biased;
            () = self.call.context.cancel_token().cancelled() => {
                let decided = DecidedCall::new(request, ApprovalDecision::Cancelled, ApprovalBasis::Approver);
                self.observer.decided(&decided);
                let message = "the call was cancelled before it was approved; it did not run";
                Err(refusal(self.call, ErrorKind::Cancelled, message.to_owned()))
            }
            answer = self.answer(request) => Ok(answer),
        }
    }

    /// Returns the remembered answer. Without a remembered answer, or after a rejected edit, asks the approver and remembers
    /// the answer according to its scope. Without an approver, the request is unanswered.
    async fn answer(&self, request: &ApprovalRequest) -> QuestionAnswer {
        let _stopped_clock = WallClock::of(self.call.context).map(|clock| clock.stop());
        let memory = &self.approvals.memory;
        let approver = self.approvals.approver.as_ref();
        let _turn = match approver.filter(|approver| approver.is_sequential()) {
            Some(_) => Some(self.approvals.queue.wait_for_turn().await),
            None => None,
        };
        // Looks again, because an answer that was remembered while this call waited for its turn may apply to it.
        if request.rejected_edit.is_none()
            && let Some(remembered_approval) = memory.find(request, self.call.context)
        {
            return QuestionAnswer::new(remembered_approval, ApprovalBasis::Memory);
        }
        self.observer.requested(request);
        let Some(approver) = approver else {
            let reason = "it needs an approval, and no person can be asked".to_owned();
            return QuestionAnswer::new(Approval::Unanswered { reason }, ApprovalBasis::Approver);
        };
        let mut question = request.clone();
        question.waiting = self.approvals.queue.waiting_count();
        let (answer, basis) = self.observer.ask(&**approver, question, self.call.context).await;
        let mut remembered_answer = memory.remember(request, &answer, self.call.context);
        if self.is_first_time_mode && answer.scope == ApprovalScope::Call && answer.approval == Approval::Approved {
            remembered_answer = Some(memory.remember_tool(request));
        }
        QuestionAnswer {
            approval: answer.approval,
            basis,
            remembered_answer,
        }
    }

    /// Passes a decision to the observer. Returns the error of a decision that does not allow the call.
    fn report_decision(
        &self,
        request: &ApprovalRequest,
        approval: &Approval,
        basis: ApprovalBasis,
        remembered_answer: Option<&RememberedAnswer>,
    ) -> Result<(), ToolError> {
        let (decision, reason, edited_arguments) = match approval {
            Approval::Approved => (ApprovalDecision::Approved, None, None),
            Approval::Edited { arguments } => (ApprovalDecision::Edited, None, Some(arguments)),
            Approval::Denied { reason } => (ApprovalDecision::Denied, Some(reason), None),
            Approval::Unanswered { reason } => (ApprovalDecision::Unanswered, Some(reason), None),
        };
        let mut decided = DecidedCall::new(request, decision, basis);
        decided.reason = reason.map(String::as_str);
        decided.edited_arguments = edited_arguments;
        decided.remembered_answer = remembered_answer;
        self.observer.decided(&decided);
        reason.map_or(Ok(()), |reason| Err(denial(self.call, reason)))
    }

    /// Checks edited arguments. Returns the access of the call with them, or the reason why they cannot be used.
    async fn check_edit(&self, request: &ApprovalRequest, edited: &Arguments) -> Result<CallAccess, String> {
        let tool = self.call.tool;
        if request.arguments != self.call.arguments {
            return Err("the arguments contain secrets that are not shown, and cannot be edited".to_owned());
        }
        validate(tool, edited).map_err(|error| error.report().message.clone())?;
        let access = self.approvals.access(tool, edited, self.call.context).await;
        match self.approvals.mode(tool, edited, &access) {
            ApprovalMode::Deny => Err("the policy does not allow these arguments".to_owned()),
            _ => Ok(access),
        }
    }
}

/// Creates the request for the approval of a call.
pub(super) async fn request_of(call: &StartingCall<'_>, access: &CallAccess) -> ApprovalRequest {
    let arguments = call.tool.redacted(call.arguments.clone(), call.context).await;
    let mut request = ApprovalRequest::new(call.id.clone(), call.tool.definition(), arguments, access.clone());
    request.callers = CallChain::of(call.context).to_vec();
    request
}

/// Checks arguments against the schema of the tool, so that a person is not asked about a call that would fail.
pub(super) fn validate(tool: &dyn Tool, arguments: &Arguments) -> Result<(), ToolError> {
    let definition = tool.definition();
    let validator = if definition.id.is_native() {
        InputValidator::of(definition)
    } else {
        InputValidator::of_untrusted(definition)
    };
    let validator = validator.map_err(ToolError::Operator)?;
    validator.check(arguments.clone()).map(drop)
}

/// Returns the error of a call that was not approved.
pub(super) fn denial(call: &StartingCall<'_>, reason: &str) -> ToolError {
    refusal(call, ErrorKind::Denied, format!("the call was not approved: {reason}"))
}

fn refusal(call: &StartingCall<'_>, kind: ErrorKind, message: String) -> ToolError {
    let error = Error::new(kind, Phase::Validate, message);
    ToolError::Model(error.with_tool(call.tool.definition().name()))
}
