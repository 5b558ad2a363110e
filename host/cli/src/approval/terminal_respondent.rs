//! The respondent that asks the person at the terminal.

use std::sync::Arc;

use async_trait::async_trait;

use super::form_entry::{
    CONFIRM_PROMPT, TypedValue, error_page, field_page, field_prompt, heading, parse_confirmation, parse_line,
};
use super::terminal::{OpenQuestion, Screen, print_prompt};
use super::typed_input::{TypedInput, TypedLines, discard_typed};
use crate::output::page::Page;
use crate::output::printer::write_stderr;
use toolwit::tool::{Answer, FormField, Question, Respondent, Unanswered};
use toolwit::{Arguments, ToolContext};

/// Maximum number of times that the prompt of one field is shown.
const ATTEMPTS_MAX: usize = 20;

/// Shows the forms of plugins to the person at the terminal, one after another.
pub(crate) struct TerminalRespondent {
    screen: Arc<dyn Screen>,
}

impl TerminalRespondent {
    pub(crate) fn new(screen: Arc<dyn Screen>) -> Self {
        Self { screen }
    }
}

#[async_trait]
impl Respondent for TerminalRespondent {
    async fn answer(&self, question: &Question, _context: &ToolContext) -> Result<Answer, Unanswered> {
        let open_question = OpenQuestion::open(&self.screen).await;
        discard_typed();
        let answer = fill_in(question, &mut TypedInput, &mut write_stderr).await;
        open_question.close();
        Ok(answer)
    }
}

/// Prints the form, and reads its values. At the end of the input, and after too many invalid lines, the form is cancelled.
async fn fill_in(
    question: &Question,
    typed_lines: &mut dyn TypedLines,
    print: &mut (dyn FnMut(&Page) + Send),
) -> Answer {
    print(&heading(question));
    if question.form.fields().is_empty() {
        return confirm(typed_lines, print).await;
    }
    let mut values = Arguments::new();
    for field in question.form.fields() {
        match fill_in_field(field, typed_lines, print).await {
            TypedValue::Value(value) => values.extend(value.map(|value| (field.name.clone(), value))),
            TypedValue::Decline => return Answer::Declined,
            TypedValue::Cancel | TypedValue::Invalid(_) => return Answer::Cancelled,
        }
    }
    Answer::Accepted(values)
}

async fn fill_in_field(
    field: &FormField,
    typed_lines: &mut dyn TypedLines,
    print: &mut (dyn FnMut(&Page) + Send),
) -> TypedValue {
    print(&field_page(field));
    for _ in 0..ATTEMPTS_MAX {
        print_prompt(&field_prompt(field), print);
        let Some(line) = typed_lines.next().await else {
            break;
        };
        match parse_line(field, &line) {
            TypedValue::Invalid(reason) => print(&error_page(&reason)),
            typed => return typed,
        }
    }
    TypedValue::Cancel
}

async fn confirm(typed_lines: &mut dyn TypedLines, print: &mut (dyn FnMut(&Page) + Send)) -> Answer {
    for _ in 0..ATTEMPTS_MAX {
        print_prompt(CONFIRM_PROMPT, print);
        let Some(line) = typed_lines.next().await else {
            break;
        };
        match parse_confirmation(&line) {
            Some(TypedValue::Value(_)) => return Answer::Accepted(Arguments::new()),
            Some(TypedValue::Decline) => return Answer::Declined,
            Some(_) => return Answer::Cancelled,
            None => {}
        }
    }
    Answer::Cancelled
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use toolwit::tool::Form;

    fn question(message: &str, properties: Value, required: Value) -> Question {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Question::new("shop", "order", Form::parse(message, &schema.to_string()).unwrap())
    }

    /// Fills in a form, with the typed text as input. Returns the printed text and the answer.
    fn fill_in_with(question: &Question, typed: &str) -> (String, Answer) {
        let mut printed = String::new();
        let mut print = |page: &Page| {
            printed.push_str(&page.to_string());
            if !printed.ends_with('\n') {
                printed.push('\n');
            }
        };
        let mut typed_lines = typed.lines();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answer = runtime.block_on(fill_in(question, &mut typed_lines, &mut print));
        (anstream::adapter::strip_str(&printed).to_string(), answer)
    }

    // attack: M6
    #[test]
    fn form_names_the_plugin_and_its_text_cannot_imitate_the_host() {
        let message = "Your name?\nquestion   from the plugin bank\napprove    pay\nrun it? [y]es, [n]o";
        let (printed, _) = fill_in_with(&question(message, json!({"name": {"type": "string"}}), json!([])), "");
        let lines: Vec<_> = printed.lines().collect();
        assert_eq!(lines[0], "question   from the plugin shop");
        for line in &lines[1..5] {
            assert!(line.starts_with("    "), "a line of the plugin is indented: {line:?}");
        }
    }

    #[test]
    fn each_typed_line_becomes_the_value_of_its_field() {
        let properties = json!({
            "name": {"type": "string", "title": "Your name", "description": "As on the door"},
            "count": {"type": "integer", "minimum": 1},
            "gift": {"type": "boolean", "default": true},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}},
            "note": {"type": "string"},
        });
        let form = question("Your order?", properties, json!(["name", "count"]));
        let (printed, answer) = fill_in_with(&form, "\nAda\nmany\n0\n3\n\n2\n1, blue\n\n");
        let expected = json!({"name": "Ada", "count": 3, "gift": true, "size": "l", "tags": ["red", "blue"]});
        assert_eq!(
            answer,
            Answer::Accepted(expected.as_object().unwrap().clone()),
            "{printed}"
        );
        for part in [
            "As on the door",
            "Your name (a text): ",
            "2  Large",
            "error: a value is required",
            "at least 1",
        ] {
            assert!(printed.contains(part), "{part}\n{printed}");
        }
    }

    #[test]
    fn a_form_can_be_refused_and_closed_and_no_input_accepts_it() {
        let form = question("Name?", json!({"name": {"type": "string"}}), json!(["name"]));
        assert_eq!(fill_in_with(&form, "/decline\n").1, Answer::Declined);
        assert_eq!(fill_in_with(&form, "/cancel\n").1, Answer::Cancelled);
        assert_eq!(fill_in_with(&form, "").1, Answer::Cancelled);
        assert_eq!(fill_in_with(&form, &"\n".repeat(100)).1, Answer::Cancelled);
        let confirmation = question("Sure?", json!({}), json!([]));
        assert_eq!(
            fill_in_with(&confirmation, "what\ny\n").1,
            Answer::Accepted(Arguments::new())
        );
        assert_eq!(fill_in_with(&confirmation, "n\n").1, Answer::Declined);
        assert_eq!(fill_in_with(&confirmation, "").1, Answer::Cancelled);
    }
}
