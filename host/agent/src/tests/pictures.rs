//! Pictures of users and of results, from the conversation to the model, and in journals and traces.

use super::journal::session_id;
use super::*;
use crate::model::DescribedModel;
use crate::{Journal, MemoryJournalStore, Trace};
use toolwit_core::{Artifact, Picture};

/// Returns a picture that differs from those of other numbers.
fn picture(number: u8) -> Picture {
    Picture::from_bytes(&[b"GIF89a", &[number][..]].concat()).unwrap()
}

/// Returns a tool whose result has an image.
fn camera() -> Arc<dyn Tool> {
    tool("camera", |_, _| {
        let image = Artifact::new("image/gif", json!({"data": picture(2).base64()}));
        Ok(ToolResult::text("a photo").with_artifact(image))
    })
}

/// Returns the builder of a conversation with the tool `camera`, whose model takes pictures or not.
fn configured(steps: impl IntoIterator<Item = Step>, accepts_pictures: bool) -> (ConversationBuilder, TestModel) {
    let (builder, model) = TestModel::playing(steps);
    let described_model = DescribedModel::new(model.clone()).with_pictures(accepts_pictures);
    (builder.model(described_model).tool(camera()), model)
}

/// Returns the pictures of each message.
fn pictures(messages: &[Message]) -> Vec<Vec<Picture>> {
    messages.iter().map(|message| message.pictures.clone()).collect()
}

#[tokio::test]
async fn pictures_of_the_user_and_of_results_reach_only_a_model_that_takes_them() {
    for accepts_pictures in [true, false] {
        let (builder, model) = configured([call([("camera", json!({}))]), reply("seen")], accepts_pictures);
        let mut conversation = builder.build().unwrap();
        let outcome = conversation.turn("see").picture(picture(1)).run().await.unwrap();
        let kept = [vec![picture(1)], Vec::new(), vec![picture(2)], Vec::new()];
        assert_eq!(pictures(&outcome.history), kept);
        let sent = model.request(1).messages;
        if accepts_pictures {
            assert_eq!(pictures(&sent), kept[..3]);
            assert_eq!((sent[0].content(), sent[2].content()), ("see", "a photo"));
        } else {
            assert!(sent.iter().all(|message| message.pictures.is_empty()));
            for message in [&sent[0], &sent[2]] {
                let note = "[you do not receive a picture (image/gif, 7 bytes): this model does not take pictures]";
                assert!(message.content().ends_with(note), "{}", message.content());
            }
        }
    }
}

#[tokio::test]
async fn a_message_with_too_many_pictures_is_refused() {
    let (builder, model) = configured([], true);
    let mut conversation = builder.build().unwrap();
    let turn = (0..9).fold(conversation.turn("see"), |turn, number| turn.picture(picture(number)));
    let error = turn.run().await.unwrap_err();
    assert!(error.to_string().contains("more than 8 pictures"), "{error}");
    assert_eq!(model.request_count(), 0);
}

#[tokio::test]
async fn a_reopened_session_has_its_pictures_and_a_trace_does_not_have_their_data() {
    let store = MemoryJournalStore::new();
    let journal = Journal::create(&store, &session_id()).await.unwrap();
    let trace = Arc::new(Trace::new(Vec::new()));
    let (builder, _) = configured([call([("camera", json!({}))]), reply("seen"), reply("again")], true);
    let observer = trace.clone();
    let builder = builder.observer(move |event: &Event, origin: &Origin| observer.observe(event, origin));
    let mut conversation = builder.journal(journal).build().unwrap();
    conversation.turn("see").picture(picture(1)).run().await.unwrap();
    let outcome = conversation.turn("the same").picture(picture(1)).run().await.unwrap();
    drop(conversation);
    let lines = String::from_utf8(Arc::into_inner(trace).unwrap().into_inner()).unwrap();
    assert!(
        lines.contains("pictures_attached") && !lines.contains(picture(1).base64()),
        "{lines}"
    );

    let journal = Journal::open(&store, &session_id()).await.unwrap();
    let stored = serde_json::to_string(&journal.earlier_entries()).unwrap();
    assert_eq!(
        stored.matches(picture(1).base64()).count(),
        1,
        "the data is stored once"
    );
    let (builder, model) = configured([reply("more")], true);
    let mut conversation = builder.journal(journal).build().unwrap();
    conversation.run("more?").await.unwrap();
    let sent = model.request(0).messages;
    assert_eq!(pictures(&sent)[..outcome.history.len()], pictures(&outcome.history));
}
