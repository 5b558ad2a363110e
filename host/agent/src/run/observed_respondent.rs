//! The respondent of a running call: records the questions of its tools, and the answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;

use crate::event::{EarlierAnswers, Event, Observers, RecordedAnswer, RecordedQuestion};
use crate::journal::Journal;
use toolwit_core::{Answer, Question, Respondent, ToolContext, Unanswered};

/// The respondent of one call. It emits each question and each answer as an event, and stores them in the journal before the guest
/// receives the answer.
pub(super) struct ObservedRespondent {
    respondent: Arc<dyn Respondent>,
    observers: Observers,
    /// The journal of the conversation, or of an outer conversation if the conversation has none.
    journal: Option<Arc<Journal>>,
    /// The id of the model's call.
    call_id: String,
    /// The number of questions so far.
    question_count: AtomicU32,
    /// The answers of an earlier process, if the call began there and runs again.
    earlier_answers: EarlierAnswers,
}

impl ObservedRespondent {
    /// Returns the context with a respondent that records the questions of a call. Returns the context unchanged if it has no
    /// respondent.
    ///
    /// If a nested agent makes the call, the context has the respondent of the outer call. The new one replaces it, so that only
    /// the process of the nested agent emits the questions.
    pub(super) fn observe(
        context: ToolContext,
        observers: &Observers,
        call_id: &str,
        earlier_answers: EarlierAnswers,
    ) -> ToolContext {
        let outer = context.extension::<Arc<Self>>();
        let Some(respondent) =
            outer.map_or_else(|| context.respondent().cloned(), |outer| Some(outer.respondent.clone()))
        else {
            return context;
        };
        let observed = Arc::new(Self {
            respondent,
            observers: observers.clone(),
            journal: context.extension::<Arc<Journal>>().cloned(),
            call_id: call_id.to_owned(),
            question_count: AtomicU32::new(0),
            earlier_answers,
        });
        context.with_respondent(observed.clone()).with_extension(observed)
    }

    /// Returns the answer that a person gave to the same question in an earlier process.
    fn earlier_answer(&self, question: &RecordedQuestion) -> Option<Answer> {
        let (earlier, answer) = self.earlier_answers.get(&question.number)?;
        (earlier == question).then(|| answer.clone())
    }

    /// Waits until the events so far are stored. After a failure, the run ends before its next call.
    async fn commit(&self) {
        if let Some(journal) = &self.journal
            && let Err(error) = journal.commit().await
        {
            tracing::error!(%error, "a question or its answer is not stored");
        }
    }
}

#[async_trait]
impl Respondent for ObservedRespondent {
    async fn answer(&self, question: &Question, context: &ToolContext) -> Result<Answer, Unanswered> {
        let number = self.question_count.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let recorded = RecordedQuestion::new(&self.call_id, number, question);
        if let Some(answer) = self.earlier_answer(&recorded) {
            return Ok(answer);
        }
        self.observers.emit(&Event::QuestionAsked(Box::new(recorded)));
        let answered = self.respondent.answer(question, context).await;
        let recorded = RecordedAnswer::new(&self.call_id, number, &answered);
        self.observers.emit(&Event::QuestionAnswered(Box::new(recorded)));
        self.commit().await;
        answered
    }

    fn repeats_calls(&self, context: &ToolContext) -> bool {
        self.respondent.repeats_calls(context)
    }
}
