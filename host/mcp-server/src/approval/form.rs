//! The form in which a user approves a call.

use rmcp::model::{
    BooleanSchema, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
};
use serde_json::Value;

use toolwit::tool::text::{is_printable, printable};
use toolwit::tool::{Approval, ApprovalRequest};

/// The form field that holds the decision.
const ALLOW_FIELD: &str = "allow";

/// Maximum length of a question, in bytes. A person cannot check more, and clients cut longer texts.
const QUESTION_BYTES_MAX: usize = 8 << 10;

/// Returns the form that asks the user about a call. The form shows the tool, all arguments, the effect class, the grant
/// rules that the call would use, and the tools that make the call. `None` if the text is too long to be shown in full.
pub(super) fn approval_form(request: &ApprovalRequest) -> Option<ElicitRequest> {
    let message = question(request);
    if message.len() > QUESTION_BYTES_MAX {
        return None;
    }
    let allow = BooleanSchema::new()
        .title("Allow this call")
        .description("If the box is not ticked, the call is refused.")
        .with_default(false);
    let requested_schema = ElicitationSchema::builder()
        .required_bool_property(ALLOW_FIELD, |_| allow)
        .build()
        .ok()?;
    Some(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message,
        requested_schema,
    }))
}

fn question(request: &ApprovalRequest) -> String {
    let arguments = serde_json::to_string_pretty(&request.arguments).unwrap_or_default();
    let mut message = format!(
        "Allow the call of `{}` ({})?\n\nArguments: {}\nEffect: {}",
        printable(&request.name),
        printable(request.tool.as_str()),
        escaped(&arguments),
        request.access.effect,
    );
    for rule in &request.access.grant {
        message.push_str("\nGranted: ");
        message.push_str(&escaped(rule));
    }
    for caller in &request.callers {
        message.push_str("\nCalled by: ");
        message.push_str(&escaped(caller.as_str()));
    }
    message
}

/// Replaces each character that is not printable by its Unicode escape, so that the user sees every character.
fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if is_printable(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_unicode());
        }
        shown
    })
}

/// Returns the decision of the user, from the client's answer to a form.
pub(super) fn parse_approval(answer: &Value) -> Approval {
    let Ok(result) = serde_json::from_value::<ElicitResult>(answer.clone()) else {
        return Approval::Unanswered {
            reason: "the client sent an invalid answer".to_owned(),
        };
    };
    let is_allowed = result.content.as_ref().and_then(|fields| fields.get(ALLOW_FIELD)) == Some(&Value::Bool(true));
    match result.action {
        ElicitationAction::Accept if is_allowed => Approval::Approved,
        ElicitationAction::Accept => Approval::Denied {
            reason: "the user sent the form without ticking `Allow this call`, which refuses the call".to_owned(),
        },
        ElicitationAction::Decline => Approval::Denied {
            reason: "the user did not allow it".to_owned(),
        },
        _ => Approval::Unanswered {
            reason: "the user did not answer".to_owned(),
        },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use toolwit::ToolDefinition;
    use toolwit::tool::{CallAccess, ToolId};

    fn request(arguments: Value) -> ApprovalRequest {
        let definition = ToolDefinition::new(ToolId::native("pay"), "pay", "Pays.", json!({"type": "object"}));
        let arguments = arguments.as_object().cloned().unwrap();
        ApprovalRequest::new("1", &definition, arguments, CallAccess::default())
    }

    #[test]
    fn question_shows_all_arguments_and_no_hidden_text() {
        let form = json!(approval_form(&request(json!({"to": "bob\u{202e}\u{200b}"}))).unwrap());
        assert_eq!(form["method"], "elicitation/create");
        let message = form["params"]["message"].as_str().unwrap();
        assert!(message.contains("`pay`"), "{message}");
        assert!(message.contains("bob\\u{202e}\\u{200b}"), "{message}");
        let schema = &form["params"]["requestedSchema"];
        assert_eq!(schema["required"], json!(["allow"]));
        let allow = &schema["properties"]["allow"];
        assert_eq!(allow["default"], false);
        assert!(allow["description"].as_str().unwrap().contains("not ticked"), "{allow}");
    }

    #[test]
    fn question_that_is_too_long_to_be_read_is_not_asked() {
        assert!(approval_form(&request(json!({"text": "x".repeat(QUESTION_BYTES_MAX)}))).is_none());
    }

    #[test]
    fn only_an_explicit_yes_allows_a_call() {
        assert_eq!(
            parse_approval(&json!({"action": "accept", "content": {"allow": true}})),
            Approval::Approved
        );
        for answer in [
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {"allow": "true"}}),
            json!({"action": "accept", "content": {"allow": false}}),
            json!({"action": "decline", "content": {"allow": true}}),
        ] {
            let Approval::Denied { reason } = parse_approval(&answer) else {
                unreachable!("{answer}")
            };
            let is_declined = answer["action"] == "decline";
            assert_eq!(reason.contains("without ticking"), !is_declined, "{reason}");
        }
        assert!(matches!(
            parse_approval(&json!({"action": "cancel"})),
            Approval::Unanswered { .. }
        ));
    }
}
