//! Questions of tools to a person: their events, and the answers after a crash.

use tokio_util::sync::CancellationToken;

use super::journal::session_id;
use super::*;
use crate::{Journal, JournalStore, MemoryJournalStore, TraceEntry};
use toolwit_core::{Answer, EffectClass, Form, Question, Respondent, Unanswered};

/// A person who answers each question with its number, and counts the questions.
#[derive(Default)]
struct Person(Mutex<u32>);

#[async_trait]
impl Respondent for Person {
    async fn answer(&self, _: &Question, _: &ToolContext) -> Result<Answer, Unanswered> {
        let mut count = self.0.lock().unwrap();
        *count += 1;
        let values = json!({"n": *count}).as_object().unwrap().clone();
        Ok(Answer::Accepted(values))
    }
}

/// Returns a tool that asks these questions, and returns the values of the answers.
fn asking_tool(messages: &'static [&'static str]) -> Arc<dyn Tool> {
    let tool = NativeTool::new(
        "ask",
        "Asks.",
        json!({"type": "object"}),
        move |_, context: ToolContext| async move {
            let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
            let mut answers = Vec::new();
            for message in messages {
                let form = Form::parse(message, &schema.to_string()).unwrap();
                let respondent = context.respondent().unwrap();
                match respondent.answer(&Question::new("shop", "n", form), &context).await {
                    Ok(Answer::Accepted(values)) => answers.push(values["n"].clone()),
                    other => panic!("{other:?}"),
                }
            }
            Ok(ToolResult::text(json!(answers).to_string()))
        },
    );
    Arc::new(tool.unwrap().with_effect(EffectClass::Read))
}

fn asks() -> [Step; 2] {
    [call([("ask", json!({}))]), reply("done")]
}

/// Runs a conversation whose tool asks. Returns its stored entries.
async fn recorded_entries() -> Vec<TraceEntry> {
    let store = MemoryJournalStore::new();
    let (builder, _) = TestModel::playing(asks());
    let journal = Journal::create(&store, &session_id()).await.unwrap();
    let builder = builder.tools([asking_tool(&["A?", "B?"])]);
    let builder = builder.respondent(Arc::new(Person::default()));
    let mut conversation = builder.journal(journal).build().unwrap();
    conversation.run("go").await.unwrap();
    store.entries(&session_id()).await.unwrap()
}

fn is_answer(entry: &TraceEntry) -> bool {
    matches!(entry.event, Event::QuestionAnswered(_))
}

#[tokio::test]
async fn questions_and_answers_are_entries_of_the_session() {
    let entries = recorded_entries().await;
    let recorded = entries.iter().filter_map(|entry| match &entry.event {
        Event::QuestionAsked(question) => Some(format!("{} {} {}", question.plugin, question.number, question.message)),
        Event::QuestionAnswered(answer) => Some(format!("{} {:?}", answer.number, answer.answer.is_some())),
        _ => None,
    });
    let recorded: Vec<_> = recorded.collect();
    assert_eq!(recorded, ["shop 1 A?", "1 true", "shop 2 B?", "2 true"]);
}

/// Resumes a run whose process stopped after `entry_count` entries. Returns the number of questions to the person, and the result
/// of the call.
async fn resumed(entries: &[TraceEntry], entry_count: usize, messages: &'static [&'static str]) -> (u32, String) {
    let store = MemoryJournalStore::new();
    let writer = store.create(&session_id()).await.unwrap();
    writer.append(entries[..entry_count].to_vec()).await.unwrap();
    drop(writer);
    let (builder, _) = TestModel::playing([reply("done")]);
    let journal = Journal::open(&store, &session_id()).await.unwrap();
    let person = Arc::new(Person::default());
    let builder = builder.tools([asking_tool(messages)]).respondent(person.clone());
    let mut conversation = builder.journal(journal).build().unwrap();
    conversation
        .resume_run(CancellationToken::new())
        .await
        .unwrap()
        .unwrap();
    let count = *person.0.lock().unwrap();
    (count, tool_results(conversation.history())[0].to_owned())
}

#[tokio::test]
async fn an_answered_question_is_not_asked_again_after_a_crash() {
    let entries = recorded_entries().await;
    let first_answer = entries.iter().position(is_answer).unwrap() + 1;
    let both = &["A?", "B?"];
    assert_eq!(resumed(&entries, first_answer, both).await, (1, "[1,1]".to_owned()));
    let other = &["Other?", "B?"];
    assert_eq!(
        resumed(&entries, first_answer, other).await,
        (2, "[1,2]".to_owned()),
        "an answer is valid for its own question only"
    );
    assert_eq!(resumed(&entries, first_answer - 1, both).await.0, 2);
    let is_return = |entry: &TraceEntry| matches!(entry.event, Event::ToolReturned { .. });
    let returned = entries.iter().position(is_return).unwrap() + 1;
    assert_eq!(
        resumed(&entries, returned, both).await,
        (0, "[1,2]".to_owned()),
        "a call that ended does not run again"
    );
}
