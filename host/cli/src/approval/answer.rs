//! The answers that a person can type.

use std::time::Duration;

use toolwit::Arguments;
use toolwit::tool::{Approval, ApprovalAnswer, ApprovalScope};

/// The default time for which an answer is valid in later conversations.
const DEFAULT_VALIDITY: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A typed answer.
#[derive(Debug, PartialEq)]
pub(super) enum TypedAnswer {
    /// An answer to the question.
    Answer(ApprovalAnswer),
    /// A request to edit the arguments.
    Edit,
    /// A request for a list of the possible answers.
    Help,
}

/// Parses a typed line. In a denial, the text after `n` is the reason, which the model reads. A line that is not an
/// answer is a request for help. `arguments` are the arguments of the call.
pub(super) fn parse_answer(line: &str, arguments: &Arguments) -> TypedAnswer {
    let line = line.trim();
    let (word, reason) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let approved = || ApprovalAnswer::from(Approval::Approved);
    let answer = match word.to_ascii_lowercase().as_str() {
        "y" | "yes" => approved(),
        "n" | "no" => denial(reason).into(),
        "r" | "run" => approved().with_scope(ApprovalScope::Run),
        "s" | "session" => approved().with_scope(ApprovalScope::Session),
        "a" | "always" => with_lasting_scope(approved(), ApprovalScope::ExactArguments(arguments.clone())),
        "t" | "tool" => with_lasting_scope(approved(), ApprovalScope::Tool),
        "e" | "edit" => return TypedAnswer::Edit,
        _ => return TypedAnswer::Help,
    };
    TypedAnswer::Answer(answer)
}

/// Makes an answer valid for further calls in this and later conversations, for 30 days. `scope` selects these calls.
pub(crate) fn with_lasting_scope(answer: ApprovalAnswer, scope: ApprovalScope) -> ApprovalAnswer {
    answer.with_scope(scope).with_validity(DEFAULT_VALIDITY)
}

/// Returns a person's denial of a call. The reason is for the model, and may be empty.
pub(crate) fn denial(reason: &str) -> Approval {
    let reason = match reason.trim() {
        "" => "the user refused it".to_owned(),
        reason => format!("the user refused it: {reason}"),
    };
    Approval::Denied { reason }
}
