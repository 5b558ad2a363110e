//! A decoder of server-sent events.

/// The byte order mark in UTF-8. A stream may start with it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Decodes a stream of server-sent events, which arrives in pieces of any size.
///
/// The decoder follows the HTML standard: it accepts the line ends `\n`, `\r\n` and `\r`, comments, data of several lines, and a
/// byte order mark. There are two differences: the last event needs no blank line after it, and a line `data` without a colon is
/// ignored. Of the name of an event, only whether it is `error` is returned: the providers repeat all other names in the data.
/// Some servers send an error as a field `error`, which is decoded as the data of an event with this name.
#[derive(Debug)]
pub(super) struct EventDecoder {
    /// The part of the current line that has arrived.
    line: Vec<u8>,
    /// The data of the current event, with `\n` after each line.
    data: Vec<u8>,
    /// Whether the last byte was `\r`. A `\n` after it belongs to the same line end.
    is_after_carriage_return: bool,
    is_first_line: bool,
    /// Whether the name of the current event is `error`.
    is_error: bool,
    /// Whether a line had a form that no event has, such as a line of HTML.
    has_other_lines: bool,
    event_bytes_max: usize,
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventText {
    /// Whether the name of the event is `error`.
    pub(super) is_error: bool,
    /// The data, without the last line end.
    pub(super) data: String,
}

/// The error for an event that exceeds its maximum size.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OversizedEvent;

impl EventDecoder {
    pub(super) fn new(event_bytes_max: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            is_after_carriage_return: false,
            is_first_line: true,
            is_error: false,
            has_other_lines: false,
            event_bytes_max,
        }
    }

    /// Returns whether a line of the stream had a form that no event has, such as a line of HTML.
    pub(super) fn has_other_lines(&self) -> bool {
        self.has_other_lines
    }

    /// Decodes a piece of the stream and appends the data of each event that it completes.
    pub(super) fn push(&mut self, mut piece: &[u8], events: &mut Vec<EventText>) -> Result<(), OversizedEvent> {
        while let Some(first) = piece.first() {
            if std::mem::take(&mut self.is_after_carriage_return) && *first == b'\n' {
                piece = &piece[1..];
                continue;
            }
            let text_end = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (text, remainder) = piece.split_at(text_end.unwrap_or(piece.len()));
            if self.line.len() + self.data.len() + text.len() > self.event_bytes_max {
                return Err(OversizedEvent);
            }
            self.line.extend_from_slice(text);
            if let Some((line_end, after_line)) = remainder.split_first() {
                self.is_after_carriage_return = *line_end == b'\r';
                self.end_line(events);
                piece = after_line;
            } else {
                piece = remainder;
            }
        }
        Ok(())
    }

    /// Ends the stream and appends the data of its last event, if the blank line after this event is missing.
    pub(super) fn finish(&mut self, events: &mut Vec<EventText>) {
        if !self.line.is_empty() {
            self.end_line(events);
        }
        self.end_event(events);
    }

    /// Reads the current line, which is complete. An empty line ends the event.
    fn end_line(&mut self, events: &mut Vec<EventText>) {
        let line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if std::mem::take(&mut self.is_first_line) {
            text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        }
        if text.is_empty() {
            self.end_event(events);
        } else if let Some(value) = field_value(text, b"data:") {
            self.data.extend_from_slice(value);
            self.data.push(b'\n');
        } else if let Some(value) = field_value(text, b"error:") {
            self.is_error = true;
            self.data.extend_from_slice(value);
            self.data.push(b'\n');
        } else if let Some(name) = field_value(text, b"event:") {
            self.is_error = name.trim_ascii() == b"error";
        } else {
            let is_known = [&b":"[..], b"id", b"retry", b"data", b"event"]
                .iter()
                .any(|start| text.starts_with(start));
            self.has_other_lines |= !is_known;
        }
        // The buffer is reused for the next line.
        self.line = line;
        self.line.clear();
    }

    /// Appends the data of the current event to `events`, if the event has data.
    fn end_event(&mut self, events: &mut Vec<EventText>) {
        let is_error = std::mem::take(&mut self.is_error);
        if self.data.pop().is_some() {
            let data = String::from_utf8_lossy(&self.data).into_owned();
            events.push(EventText { is_error, data });
            self.data.clear();
        }
    }
}

/// Returns the value of a line with this field, without the space before it. Returns `None` for a line with another field.
fn field_value<'l>(line: &'l [u8], field: &[u8]) -> Option<&'l [u8]> {
    let value = line.strip_prefix(field)?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(pieces: &[&[u8]]) -> Result<Vec<String>, OversizedEvent> {
        let (mut decoder, mut events) = (EventDecoder::new(1_000), Vec::new());
        for piece in pieces {
            decoder.push(piece, &mut events)?;
        }
        decoder.finish(&mut events);
        Ok(events.into_iter().map(|event| event.data).collect())
    }

    fn decode_text(text: &str) -> Vec<String> {
        decode(&[text.as_bytes()]).unwrap_or_default()
    }

    // attack: F6
    #[test]
    fn events_with_comments_names_and_several_data_lines_are_decoded_for_each_line_end() {
        for end in ["\n", "\r\n", "\r"] {
            let lines = [
                "\u{feff}: comment",
                "event: x",
                "data: a",
                "data:b",
                "id: 1",
                "",
                "",
                "data",
                "data:  c",
                "",
                "data: é",
            ];
            assert_eq!(decode_text(&lines.join(end)), ["a\nb", " c", "é"], "{end:?}");
        }
        assert_eq!(decode_text("data:\n\n: only a comment\n\n"), [""]);
        assert_eq!(decode_text("no field at all"), [""; 0]);
    }

    // attack: F6
    #[test]
    fn an_event_beyond_its_limit_is_refused() {
        let line = format!("data: {}", "x".repeat(994));
        assert_eq!(decode(&[line.as_bytes()]).map(|events| events.len()), Ok(1));
        assert_eq!(decode(&[line.as_bytes(), b"x"]), Err(OversizedEvent));
        let many_lines = "data: xxxxxxxxxx\n".repeat(100);
        assert_eq!(decode(&[many_lines.as_bytes()]), Err(OversizedEvent));
        let many_events = "data: xxxxxxxxxx\n\n".repeat(1_000);
        assert_eq!(decode(&[many_events.as_bytes()]).map(|events| events.len()), Ok(1_000));
    }

    #[test]
    fn events_of_errors_and_lines_of_no_event_are_recognized() {
        let (mut decoder, mut events) = (EventDecoder::new(1_000), Vec::new());
        let stream = b"event: error\ndata: {\"a\":1}\n\nerror: {}\n\nevent: x\ndata: 1\n\n: c\nid: 1\nretry: 2\n";
        assert_eq!(decoder.push(stream, &mut events), Ok(()));
        let read: Vec<_> = events.iter().map(|event| (event.is_error, &*event.data)).collect();
        assert_eq!(read, [(true, "{\"a\":1}"), (true, "{}"), (false, "1")]);
        assert!(!decoder.has_other_lines());
        assert_eq!(decoder.push(b"<html>\n", &mut events), Ok(()));
        assert!(decoder.has_other_lines());
    }

    proptest! {
        // attack: F6
        #[test]
        fn boundaries_of_pieces_do_not_matter(
            fragments in prop::collection::vec(
                prop_oneof![
                    Just("data: ".as_bytes().to_vec()), Just(b"\r\n".to_vec()), Just(b"\r".to_vec()), Just(b"\n".to_vec()),
                    Just(b": c".to_vec()), Just(b"\xEF\xBB\xBF".to_vec()), Just("é😀".as_bytes().to_vec()),
                    prop::collection::vec(any::<u8>(), 0..6),
                ],
                0..30,
            ),
            cuts in prop::collection::vec(0usize..200, 0..20),
        ) {
            let stream = fragments.concat();
            let uncut = decode(&[&stream]);
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
            prop_assert_eq!(decode(&pieces), uncut.clone());
            let bytes: Vec<_> = stream.chunks(1).collect();
            prop_assert_eq!(decode(&bytes), uncut);
        }
    }
}
