//! Tools that a resume restores only after their source was contacted.

use tokio_util::sync::CancellationToken;

use super::journal::session_id;
use super::unfolding::invoke;
use super::*;
use crate::injection::Facade;
use crate::{Journal, JournalStore, MemoryJournalStore, Resolution};
use toolwit_core::{
    Approval, ApprovalAnswer, ApprovalPolicy, ApprovalRequest, Approvals, Approver, EffectClass, Error, ErrorKind,
    Phase, ToolDefinition, ToolId,
};

/// The effects of the tool `note_write`, of all processes.
type Notes = Arc<Mutex<Vec<String>>>;

/// Returns a facade that fetches the tool `note_write`. If the server is down, nothing can be fetched.
fn note_facade(notes: &Notes, effect: EffectClass, is_up: bool) -> Facade {
    let notes = notes.clone();
    let facade = Facade::builder("notes", "Notes of a server.").fetch_with(move |_| {
        let notes = notes.clone();
        async move {
            if !is_up {
                let error = Error::new(ErrorKind::Io, Phase::Load, "the server is down");
                return Err(ToolError::Model(error));
            }
            let definition = ToolDefinition::new(
                ToolId::native("note_write"),
                "note_write",
                "Writes a note.",
                json!({"type": "object"}),
            );
            let tool = NativeTool::from_definition(definition.with_effect(effect), move |arguments, _| {
                let notes = notes.clone();
                async move {
                    let text = arguments["text"].as_str().unwrap_or_default();
                    notes.lock().unwrap().push(text.to_owned());
                    Ok(ToolResult::text(format!("wrote {text}")))
                }
            });
            Ok(vec![Arc::new(tool.unwrap()) as Arc<dyn Tool>])
        }
    });
    facade.build().unwrap()
}

/// An approver that never answers.
struct SilentApprover;

#[async_trait]
impl Approver for SilentApprover {
    async fn approve(&self, _: ApprovalRequest, _: &ToolContext) -> ApprovalAnswer {
        std::future::pending().await
    }
}

fn write() -> Step {
    call([("note_write", json!({"text": "hello"}))])
}

/// Returns the store of a run that ended with its process while `note_write` waited for an approval.
async fn store_of_waiting_run(notes: &Notes) -> MemoryJournalStore {
    let store = MemoryJournalStore::new();
    let (builder, _) = TestModel::playing([invoke("notes"), write(), reply("never")]);
    let journal = Journal::create(&store, &session_id()).await.unwrap();
    let approvals = Approvals::new(ApprovalPolicy::default()).with_approver(SilentApprover);
    let builder = builder
        .tool(note_facade(notes, EffectClass::Write, true))
        .approvals(approvals);
    suspend_at_question(builder.journal(journal).build().unwrap(), &store).await;
    store
}

/// Runs a turn until a question is stored, and suspends the run.
async fn suspend_at_question(mut conversation: Conversation, store: &MemoryJournalStore) {
    let suspension = conversation.suspension().unwrap();
    let suspended = async {
        while store.pending_approvals(&session_id()).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        suspension.suspend().await.unwrap();
    };
    tokio::select! {
        result = conversation.run("go") => panic!("the run does not wait: {result:?}"),
        () = suspended => {}
    }
}

/// Opens the session as another process would.
async fn reopen(store: &MemoryJournalStore, facade: Facade, approval: Option<Approval>) -> (Conversation, TestModel) {
    let (builder, model) = TestModel::playing([reply("done")]);
    let journal = Journal::open(store, &session_id()).await.unwrap();
    let approvals = Approvals::new(ApprovalPolicy::default());
    let approvals = match approval {
        Some(approval) => approvals.with_approver(move |_: &ApprovalRequest| approval.clone()),
        None => approvals.with_approver(SilentApprover),
    };
    let conversation = builder
        .tool(facade)
        .approvals(approvals)
        .journal(journal)
        .build()
        .unwrap();
    (conversation, model)
}

async fn resume(conversation: &mut Conversation) -> Result<RunOutcome, RunError> {
    conversation.resume_run(CancellationToken::new()).await.unwrap()
}

fn last_result(conversation: &Conversation) -> String {
    tool_results(conversation.history()).pop().unwrap().to_owned()
}

#[tokio::test]
async fn an_approval_that_is_given_after_a_resume_reaches_a_fetched_tool() {
    for stored in [false, true] {
        let notes = Notes::default();
        let store = store_of_waiting_run(&notes).await;
        let in_process = (!stored).then_some(Approval::Approved);
        if stored {
            let pending = store.pending_approvals(&session_id()).await.unwrap();
            let answer = Approval::Approved.into();
            store
                .answer_approval(&session_id(), pending[0].number, answer)
                .await
                .unwrap();
        }
        let facade = note_facade(&notes, EffectClass::Write, true);
        let (mut conversation, model) = reopen(&store, facade, in_process).await;
        assert_eq!(resume(&mut conversation).await.unwrap().text(), "done");
        assert_eq!(last_result(&conversation), "wrote hello");
        assert_eq!(*notes.lock().unwrap(), ["hello"], "once");
        assert_eq!(model.request(0).names, ["notes", "note_write", "notes_context"]);
    }
}

#[tokio::test]
async fn the_reason_of_a_denial_reaches_the_model_also_if_the_tool_is_gone() {
    for is_up in [true, false] {
        let notes = Notes::default();
        let store = store_of_waiting_run(&notes).await;
        let pending = store.pending_approvals(&session_id()).await.unwrap();
        let reason = "not that one".to_owned();
        let answer = Approval::Denied { reason }.into();
        store
            .answer_approval(&session_id(), pending[0].number, answer)
            .await
            .unwrap();
        let facade = note_facade(&notes, EffectClass::Write, is_up);
        let (mut conversation, _) = reopen(&store, facade, None).await;
        assert_eq!(resume(&mut conversation).await.unwrap().text(), "done");
        let result = last_result(&conversation);
        assert!(result.contains("denied") && result.contains("not that one"), "{result}");
        assert!(notes.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_run_whose_tool_is_gone_is_not_continued_and_can_be_resumed_later() {
    let notes = Notes::default();
    let store = store_of_waiting_run(&notes).await;
    let down = note_facade(&notes, EffectClass::Write, false);
    let (mut conversation, model) = reopen(&store, down, Some(Approval::Approved)).await;
    let error = resume(&mut conversation).await.unwrap_err();
    let RunFailure::Tool(error) = &error.failure else {
        panic!("{error}")
    };
    assert_eq!(error.kind, ErrorKind::ToolUnavailable);
    assert!(error.message.contains("`note_write`"), "{error}");
    assert_eq!(model.request_count(), 0);
    drop(conversation);
    let up = note_facade(&notes, EffectClass::Write, true);
    let (mut conversation, _) = reopen(&store, up, Some(Approval::Approved)).await;
    assert_eq!(resume(&mut conversation).await.unwrap().text(), "done");
    assert_eq!(*notes.lock().unwrap(), ["hello"]);
}

/// Returns the store of a run whose process ended in a call of `note_write`.
async fn store_of_killed_run(effect: EffectClass) -> MemoryJournalStore {
    let (full, killed) = (MemoryJournalStore::new(), MemoryJournalStore::new());
    let (builder, _) = TestModel::playing([invoke("notes"), write(), reply("ok")]);
    let journal = Journal::create(&full, &session_id()).await.unwrap();
    let builder = builder
        .tool(note_facade(&Notes::default(), effect, true))
        .journal(journal);
    builder.build().unwrap().run("go").await.unwrap();
    let entries = full.entries(&session_id()).await.unwrap();
    let is_start = |event: &Event| matches!(event, Event::ToolStarted { name, .. } if name.as_str() == "note_write");
    let start = entries.iter().position(|entry| is_start(&entry.event)).unwrap();
    let writer = killed.create(&session_id()).await.unwrap();
    writer.append(entries[..=start].to_vec()).await.unwrap();
    killed
}

#[tokio::test]
async fn an_interrupted_call_of_a_fetched_tool_runs_again_by_its_effect_class() {
    for effect in [EffectClass::Read, EffectClass::Idempotent, EffectClass::Write] {
        let store = store_of_killed_run(effect).await;
        let notes = Notes::default();
        let (mut conversation, _) = reopen(&store, note_facade(&notes, effect, true), Some(Approval::Approved)).await;
        let is_unresolved = !conversation.interrupted_run().unwrap().unresolved().is_empty();
        assert_eq!(is_unresolved, effect == EffectClass::Write);
        if is_unresolved {
            assert!(conversation.resolve_call("3-0", Resolution::RunAgain));
        }
        assert_eq!(resume(&mut conversation).await.unwrap().text(), "done", "{effect:?}");
        assert_eq!(*notes.lock().unwrap(), ["hello"], "{effect:?}");
        assert_eq!(last_result(&conversation), "wrote hello");
    }
}

#[tokio::test]
async fn a_person_can_decide_about_a_repeatable_call_whose_tool_is_gone() {
    let store = store_of_killed_run(EffectClass::Read).await;
    let notes = Notes::default();
    let (mut conversation, _) = reopen(&store, note_facade(&notes, EffectClass::Read, false), None).await;
    assert!(resume(&mut conversation).await.is_err());
    assert!(conversation.resolve_call("3-0", Resolution::NotDone));
    assert_eq!(resume(&mut conversation).await.unwrap().text(), "done");
    assert!(last_result(&conversation).contains("had no effect"));
    assert!(
        !conversation.resolve_call("3-0", Resolution::Done),
        "the call has ended"
    );
}

#[tokio::test]
async fn a_resumed_conversation_calls_a_fetched_tool_without_opening_its_facade_again() {
    let (builder, model) = TestModel::playing([invoke("notes"), reply("ok")]);
    let notes = Notes::default();
    let history = builder
        .tool(note_facade(&notes, EffectClass::Read, true))
        .run("go")
        .await
        .unwrap()
        .history;
    for is_up in [true, false] {
        let (builder, resumed) = TestModel::playing([write(), invoke("notes"), write(), reply("ok")]);
        let builder = builder.tool(note_facade(&notes, EffectClass::Read, is_up));
        let mut conversation = builder.history(history.clone()).resume(model.events()).build().unwrap();
        conversation.run("once more").await.unwrap();
        assert_eq!(resumed.request(0).names, ["notes", "note_write", "notes_context"]);
        let results = tool_results(conversation.history());
        match is_up {
            true => assert_eq!(results[1], "wrote hello"),
            false => assert!(results[1].contains("call `notes` again"), "{}", results[1]),
        }
    }
}

#[tokio::test]
async fn a_facade_that_is_opened_again_after_a_resume_replaces_its_lost_tools() {
    let (builder, model) = TestModel::playing([invoke("notes"), reply("ok")]);
    let notes = Notes::default();
    let history = builder
        .tool(note_facade(&notes, EffectClass::Read, true))
        .run("go")
        .await
        .unwrap()
        .history;
    // The server is down when the turn begins, and up when the model calls the facade.
    let queries = Arc::new(Mutex::new(0));
    let facade = Facade::builder("notes", "Notes of a server.").fetch_with(move |_| {
        let queries = queries.clone();
        async move {
            let mut queries = queries.lock().unwrap();
            *queries += 1;
            match *queries {
                1 => Err(ToolError::Model(Error::new(ErrorKind::Io, Phase::Load, "down"))),
                _ => Ok(vec![echo("note_write")]),
            }
        }
    });
    let (builder, _) = TestModel::playing([invoke("notes"), write(), reply("ok")]);
    let builder = builder
        .tool(facade.build().unwrap())
        .history(history)
        .resume(model.events());
    let outcome = builder.run("once more").await.unwrap();
    assert_eq!(tool_results(&outcome.history).pop().unwrap(), "note_write");
}

/// A source with the tool `note_write`, unless it is down.
struct NoteServer(bool);

#[async_trait]
impl ToolSource for NoteServer {
    fn name(&self) -> &str {
        "notes"
    }

    async fn tools(&self, _: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        match self.0 {
            true => Ok(vec![echo("note_write")]),
            false => Err(Error::new(ErrorKind::Io, Phase::Load, "the server is down")),
        }
    }
}

fn with_role(builder: ConversationBuilder, is_up: bool) -> ConversationBuilder {
    let config = GroupsConfig::parse("[groups.office]\nprovider = 'notes'").unwrap();
    let groups = ToolGroups::new()
        .with_source(NoteServer(is_up))
        .with_config(config)
        .unwrap();
    builder.groups(groups).role("office")
}

#[tokio::test]
async fn a_run_whose_role_has_lost_the_tool_is_not_continued_and_a_denial_reaches_the_model() {
    let store = MemoryJournalStore::new();
    let (builder, _) = TestModel::playing([write(), reply("never")]);
    let journal = Journal::create(&store, &session_id()).await.unwrap();
    let approvals = || Approvals::new(ApprovalPolicy::default()).with_approver(SilentApprover);
    let builder = with_role(builder, true).approvals(approvals()).journal(journal);
    suspend_at_question(builder.build().unwrap(), &store).await;
    for is_denied in [false, true] {
        let pending = store.pending_approvals(&session_id()).await.unwrap();
        if is_denied {
            let reason = "not that one".to_owned();
            let answer = Approval::Denied { reason }.into();
            store
                .answer_approval(&session_id(), pending[0].number, answer)
                .await
                .unwrap();
        }
        let (builder, _) = TestModel::playing([reply("done")]);
        let journal = Journal::open(&store, &session_id()).await.unwrap();
        let builder = with_role(builder, false).approvals(approvals()).journal(journal);
        let mut conversation = builder.build().unwrap();
        match resume(&mut conversation).await {
            Ok(_) => assert!(is_denied && last_result(&conversation).contains("not that one")),
            Err(error) => assert!(!is_denied && error.to_string().contains("`note_write`"), "{error}"),
        }
    }
}
