//! The pictures of messages: from the artifacts of results into the history, and from the history to the model.

use std::borrow::Cow;

use super::run_state::RunState;
use crate::event::{AttachedPictures, Event};
use crate::outcome::RunFailure;
use toolwit_core::limits::{PICTURES_PER_MESSAGE_MAX, PICTURES_PER_REQUEST_MAX, REQUEST_PICTURES_BYTES_MAX};
use toolwit_core::{Artifact, Error, ErrorKind, Message, Phase, Picture, Role};

/// Adds the pictures of the user to the message that was appended last.
pub(super) fn attach_to_prompt(run: &mut RunState<'_>, pictures: Vec<Picture>) {
    if pictures.is_empty() {
        return;
    }
    let history = &mut run.conversation.history;
    let attached = AttachedPictures::record(&pictures, history.messages());
    history.attach_pictures(pictures);
    run.emit(&Event::PicturesAttached(attached));
}

/// Returns the failure of a run whose message has too many pictures, or `None` if it has not.
pub(super) fn too_many_pictures(pictures: &[Picture]) -> Option<RunFailure> {
    (pictures.len() > PICTURES_PER_MESSAGE_MAX).then(|| {
        let message = format!("the message has more than {PICTURES_PER_MESSAGE_MAX} pictures");
        RunFailure::Tool(Error::new(ErrorKind::Configuration, Phase::Model, message))
    })
}

/// Returns the pictures among the artifacts of a result, and a text for the model about the images that it does not receive.
pub(super) fn result_pictures(artifacts: &[Artifact]) -> (Vec<Picture>, String) {
    let mut notes = String::new();
    let mut pictures = Vec::new();
    let mut omitted = 0;
    for picture in artifacts.iter().filter_map(Picture::of_artifact) {
        match picture {
            Ok(_) if pictures.len() >= PICTURES_PER_MESSAGE_MAX => omitted += 1,
            Ok(picture) => pictures.push(picture),
            Err(reason) => notes.push_str(&format!("\n[you do not receive an image of this result: {reason}]")),
        }
    }
    if omitted > 0 {
        notes.push_str(&format!(
            "\n[you do not receive {omitted} more pictures of this result: at most {PICTURES_PER_MESSAGE_MAX} are shown]"
        ));
    }
    (pictures, notes)
}

/// Returns the messages as a model receives them: with the newest pictures within the limits of a request, or without pictures
/// if the model does not accept them. The text of a message says which of its pictures the model does not receive.
pub(super) fn messages_for_model(messages: &[Message], accepts_pictures: bool) -> Cow<'_, [Message]> {
    if messages.iter().all(|message| message.pictures.is_empty()) {
        return Cow::Borrowed(messages);
    }
    let (mut count_left, mut bytes_left) = (PICTURES_PER_REQUEST_MAX, REQUEST_PICTURES_BYTES_MAX);
    let reason = if accepts_pictures {
        "the request has too many newer pictures"
    } else {
        "this model does not take pictures"
    };
    let mut messages = messages.to_vec();
    for message in messages.iter_mut().rev().filter(|message| !message.pictures.is_empty()) {
        let bytes: usize = message.pictures.iter().map(Picture::bytes).sum();
        let fits = message.pictures.len() <= count_left && bytes <= bytes_left;
        if accepts_pictures && fits {
            count_left -= message.pictures.len();
            bytes_left -= bytes;
            continue;
        }
        // Of two messages, the newer one must not lose its pictures to the older one.
        (count_left, bytes_left) = (0, 0);
        let pictures = std::mem::take(&mut message.pictures);
        let descriptions: Vec<_> = pictures.iter().map(Picture::to_string).collect();
        let note = format!(
            "\n[you do not receive a picture ({}): {reason}]",
            descriptions.join("; ")
        );
        if let Role::User { content } | Role::Tool { content, .. } = &mut message.role {
            content.push_str(&note);
        }
    }
    Cow::Owned(messages)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;
    use toolwit_core::limits::PICTURE_BYTES_MAX;

    use super::*;

    fn gif(bytes: usize) -> Picture {
        let mut data = b"GIF89a".to_vec();
        data.resize(bytes.max(6), 0);
        Picture::from_bytes(&data).unwrap()
    }

    #[test]
    fn a_model_that_takes_no_pictures_is_told_that_it_does_not_receive_them() {
        let messages = [Message::user("hi"), Message::user("see").with_pictures(vec![gif(6)])];
        let shown = messages_for_model(&messages, true);
        assert_eq!(*shown, messages);
        let withheld = messages_for_model(&messages, false);
        assert!(withheld[1].pictures.is_empty());
        assert_eq!(
            withheld[1].content(),
            "see\n[you do not receive a picture (image/gif, 6 bytes): this model does not take pictures]"
        );
        assert!(matches!(messages_for_model(&messages[..1], false), Cow::Borrowed(_)));
    }

    #[test]
    fn a_request_has_the_newest_pictures_within_its_limits() {
        let many = vec![Message::user("x").with_pictures(vec![gif(6); 4]); 7];
        let large = vec![Message::user("x").with_pictures(vec![gif(PICTURE_BYTES_MAX); 2]); 3];
        for (messages, shown_count) in [(many, 5), (large, 2)] {
            let shown = messages_for_model(&messages, true);
            let has_pictures: Vec<_> = shown.iter().map(|message| !message.pictures.is_empty()).collect();
            let expected: Vec<_> = (0..messages.len())
                .map(|index| index >= messages.len() - shown_count)
                .collect();
            assert_eq!(has_pictures, expected);
            assert!(shown[0].content().contains("too many newer pictures"));
        }
    }

    #[test]
    fn images_that_are_no_pictures_are_described_in_the_result() {
        let artifact = |kind: &str, data: &str| Artifact::new(kind, json!({ "data": data }));
        let png = || artifact("image/png", gif(6).base64());
        let (pictures, notes) = result_pictures(&[
            png(),
            artifact("image/svg+xml", "PHN2Zy8+"),
            artifact("audio/wav", "AAAA"),
        ]);
        assert_eq!(pictures, [gif(6)]);
        assert_eq!(
            notes,
            "\n[you do not receive an image of this result: it is not a PNG, JPEG, GIF or WebP file]"
        );
        let (pictures, notes) = result_pictures(&vec![png(); PICTURES_PER_MESSAGE_MAX + 2]);
        assert_eq!(pictures.len(), PICTURES_PER_MESSAGE_MAX);
        assert!(notes.contains("2 more pictures"), "{notes}");
    }
}
