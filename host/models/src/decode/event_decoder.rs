//! A decoder of server-sent events.

/// The byte order mark in UTF-8. A stream may start with it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Decodes a stream of server-sent events, which arrives in pieces of any size.
///
/// The decoder follows the HTML standard: it accepts the line ends `\n`, `\r\n` and `\r`, comments, data of several lines, and a
/// byte order mark. There are two differences: the last event needs no blank line after it, and a line `data` without a colon is
/// ignored. Only the data of events is returned, because the providers repeat the name of an event in its data.
#[derive(Debug)]
pub(super) struct EventDecoder {
    /// The part of the current line that has arrived.
    line: Vec<u8>,
    /// The data of the current event, with `\n` after each line.
    data: Vec<u8>,
    /// Whether the last byte was `\r`. A `\n` after it belongs to the same line end.
    is_after_carriage_return: bool,
    is_first_line: bool,
    event_bytes_max: usize,
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
            event_bytes_max,
        }
    }

    /// Decodes a piece of the stream and appends the data of each event that it completes.
    pub(super) fn push(&mut self, mut piece: &[u8], events: &mut Vec<String>) -> Result<(), OversizedEvent> {
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
    pub(super) fn finish(&mut self, events: &mut Vec<String>) {
        if !self.line.is_empty() {
            self.end_line(events);
        }
        self.end_event(events);
    }

    /// Reads the current line, which is complete. An empty line ends the event.
    fn end_line(&mut self, events: &mut Vec<String>) {
        let line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if std::mem::take(&mut self.is_first_line) {
            text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        }
        if text.is_empty() {
            self.end_event(events);
        } else if let Some(value) = text.strip_prefix(b"data:") {
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            self.data.push(b'\n');
        }
        // Comments and all other fields are ignored. The buffer is reused for the next line.
        self.line = line;
        self.line.clear();
    }

    /// Appends the data of the current event to `events`, if the event has data.
    fn end_event(&mut self, events: &mut Vec<String>) {
        if self.data.pop().is_some() {
            events.push(String::from_utf8_lossy(&self.data).into_owned());
            self.data.clear();
        }
    }
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
        Ok(events)
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
