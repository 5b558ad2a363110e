//! `toolwit:plugin/ask`: questions of a guest to the person who uses the host.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::timeout;
use wasmtime::component::{ComponentType, Lift, Lower};

use super::{Context, ConversationAccess};
use crate::grants::AccessRequest;
use toolwit_core::limits::{ANSWER_WALL_MAX, NAME_BYTES_MAX, QUESTIONS_MAX};
use toolwit_core::{Answer, Form, Question, Respondent, ToolContext, Unanswered};

/// The beginning of the keys that only the host uses.
const RESERVED_KEYS: &str = "approval";

#[derive(ComponentType, Lift)]
#[component(record)]
pub(super) struct WitForm {
    key: String,
    message: String,
    /// The schema as JSON text.
    schema: String,
}

#[derive(ComponentType, Lower)]
#[component(variant)]
pub(super) enum WitAnswer {
    #[component(name = "accepted")]
    Accepted(String),
    #[component(name = "declined")]
    Declined,
    #[component(name = "cancelled")]
    Cancelled,
}

#[derive(ComponentType, Lower)]
#[component(variant)]
pub(super) enum WitAskError {
    #[component(name = "invalid-form")]
    InvalidForm(String),
    #[component(name = "denied")]
    Denied(String),
    #[component(name = "unavailable")]
    Unavailable(String),
    #[component(name = "limit")]
    Limit(String),
}

/// The questions that a call and its nested calls have asked. The contexts of the nested calls have it as an extension.
#[derive(Clone, Debug, Default)]
pub(super) struct AskedQuestions(Arc<Mutex<BTreeSet<(String, String)>>>);

impl AskedQuestions {
    /// Returns the questions of a call: those of the surrounding call, or an empty set for an outermost call.
    pub(super) fn of(context: &ToolContext) -> Self {
        context.extension::<Self>().cloned().unwrap_or_default()
    }

    /// Adds a question of a plugin.
    ///
    /// # Errors
    /// If the plugin used the key before, or the limit is reached.
    fn add(&self, plugin: &str, key: &str) -> Result<(), WitAskError> {
        let mut questions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let question = (plugin.to_owned(), key.to_owned());
        if questions.contains(&question) {
            let message = format!("the key `{key}` was used before in this call");
            return Err(WitAskError::InvalidForm(message));
        }
        if questions.len() >= QUESTIONS_MAX as usize {
            let message = format!("a call may ask at most {QUESTIONS_MAX} questions, including those of nested calls");
            return Err(WitAskError::Limit(message));
        }
        questions.insert(question);
        Ok(())
    }
}

/// The error with which a guest ends because the call is repeated with the answer to its question.
#[derive(Debug, thiserror::Error)]
#[error("the call ended at a question, and is repeated with the answer")]
struct EndedAtQuestion;

/// Asks the person. The inner error is returned to the guest; the outer one traps it.
pub(super) async fn ask(store: &mut Context<'_>, form: WitForm) -> wasmtime::Result<Result<WitAnswer, WitAskError>> {
    let is_session = store.data().session().is_some();
    let conversation = store.data_mut().conversation()?;
    let (question, respondent) = match prepare(conversation, form, is_session) {
        Ok(prepared) => prepared,
        Err(error) => return Ok(Err(error)),
    };
    let context = conversation.context.clone();
    let answered = {
        // The time in which the person reads and types does not count towards the time limits of the call and its run.
        let _stopped_clock = conversation.deadline.stop_clock();
        // Boxed, because this future would otherwise enlarge the future of every call.
        Box::pin(timeout(ANSWER_WALL_MAX, respondent.answer(&question, &context))).await
    };
    let Ok(answered) = answered else {
        let message = format!("no answer arrived within {} s", ANSWER_WALL_MAX.as_secs());
        return Ok(Err(WitAskError::Limit(message)));
    };
    match answered {
        Ok(Answer::Accepted(values)) => {
            let values = serde_json::Value::Object(values);
            Ok(match question.form.check(&values) {
                Ok(values) => Ok(WitAnswer::Accepted(serde_json::Value::Object(values).to_string())),
                Err(reason) => Err(WitAskError::Unavailable(format!("the answer is not valid: {reason}"))),
            })
        }
        Ok(Answer::Declined) => Ok(Ok(WitAnswer::Declined)),
        Ok(Answer::Cancelled) => Ok(Ok(WitAnswer::Cancelled)),
        Err(Unanswered::CallRepeats) => Err(EndedAtQuestion.into()),
        Err(Unanswered::Unavailable(reason)) => Ok(Err(WitAskError::Unavailable(reason))),
        Err(_) => Ok(Err(WitAskError::Unavailable(
            "the question was not answered".to_owned(),
        ))),
    }
}

/// Checks the grant, the form and the limit of questions. Returns the question, and the respondent of the call.
fn prepare(
    conversation: &ConversationAccess,
    form: WitForm,
    is_session: bool,
) -> Result<(Question, Arc<dyn Respondent>), WitAskError> {
    let authority = &conversation.authority;
    let request = AccessRequest::Ask;
    if let Err(denial) = authority.require_access(&request) {
        return Err(WitAskError::Denied(format!(
            "the plugin may not {request}: {}",
            denial.reason_for_guest()
        )));
    }
    let unavailable = |reason: &str| Err(WitAskError::Unavailable(reason.to_owned()));
    let Some(respondent) = conversation.context.respondent().cloned() else {
        return unavailable("no person can be asked here");
    };
    if respondent.repeats_calls(&conversation.context) {
        if is_session {
            // The objects of the instance would be lost.
            return unavailable("the client repeats a call that asks, which a plugin with resources cannot do");
        }
        if authority.may_have_changed_something() {
            return unavailable("the client repeats a call that asks, and this call has already changed something");
        }
        if authority.has_limited_grants() {
            return unavailable("the client repeats a call that asks, and this call has used a grant for one call");
        }
    }
    let redactor = &authority.redactor;
    let WitForm { key, message, schema } = form;
    let form = Form::parse(&redactor.redact_text(&message), &redactor.redact_text(&schema));
    let form = form.map_err(WitAskError::InvalidForm)?;
    check_key(&key)?;
    conversation.questions.add(&authority.plugin, &key)?;
    Ok((Question::new(&*authority.plugin, key, form), respondent))
}

/// Checks the key of a question. A key that begins with `approval` is reserved for questions of the host.
fn check_key(key: &str) -> Result<(), WitAskError> {
    let is_key_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_key = !key.is_empty() && key.len() <= NAME_BYTES_MAX && key.chars().all(is_key_char);
    if is_key && !key.starts_with(RESERVED_KEYS) {
        return Ok(());
    }
    let message = format!(
        "a key has up to {NAME_BYTES_MAX} ASCII letters, digits, `-` and `_`, and does not begin with `{RESERVED_KEYS}`"
    );
    Err(WitAskError::InvalidForm(message))
}
