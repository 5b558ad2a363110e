//! The respondent that asks the user of an MCP client.

use async_trait::async_trait;
use rmcp::model::{ElicitResult, ElicitationAction};
use serde_json::Value;

use super::client_request::ClientRequest;
use super::mcp_client::McpClient;
use toolwit::ToolContext;
use toolwit::tool::{Answer, Question, Respondent, Unanswered};

/// Asks the user of the MCP client that made a call. Up to revision 2025-11-25, the client is asked during the call. From revision
/// 2026-07-28 on, the call ends with the question, unless it has become a task, and the client repeats it with the answer.
pub(crate) struct ClientRespondent;

#[async_trait]
impl Respondent for ClientRespondent {
    async fn answer(&self, question: &Question, context: &ToolContext) -> Result<Answer, Unanswered> {
        let unavailable = |reason: &str| Unanswered::Unavailable(reason.to_owned());
        let client = McpClient::of(context).ok_or_else(|| unavailable("no client made this call"))?;
        let request = ClientRequest::Form {
            message: framed_message(question),
            schema: question.form.schema(),
        };
        // Otherwise, the request would end with an error, and not with the answer that the plugin gives without a person.
        if !client.can_answer(&request) {
            return Err(unavailable("this client cannot ask its user"));
        }
        if client.repeats_calls() && client.is_nested {
            return Err(unavailable(
                "this client cannot be asked during a call that another tool makes",
            ));
        }
        let key = question.key.clone();
        match client.ask([(key.clone(), request)]).await {
            Ok(mut answers) => parse_answer(answers.remove(&key)),
            Err(_) if client.repeats_calls() => Err(Unanswered::CallRepeats),
            Err(error) => Err(Unanswered::Unavailable(error.report().message.to_string())),
        }
    }

    fn repeats_calls(&self, context: &ToolContext) -> bool {
        McpClient::of(context).is_some_and(|client| client.repeats_calls())
    }
}

/// Returns the text of the form. Its first line, which names the plugin, is of the host. The lines of the plugin are quoted, so
/// that they cannot imitate other questions of the host.
fn framed_message(question: &Question) -> String {
    let lines = question.form.message().lines().map(|line| format!("\n> {line}"));
    format!("The plugin `{}` asks:{}", question.plugin, lines.collect::<String>())
}

/// Parses the answer of the client. The caller checks the values against the form.
fn parse_answer(answer: Option<Value>) -> Result<Answer, Unanswered> {
    let answer = answer.and_then(|answer| serde_json::from_value::<ElicitResult>(answer).ok());
    let invalid = || Unanswered::Unavailable("the client sent an invalid answer".to_owned());
    let answer = answer.ok_or_else(invalid)?;
    match answer.action {
        ElicitationAction::Accept => match answer.content {
            None => Ok(Answer::Accepted(Default::default())),
            Some(content) => match serde_json::to_value(content) {
                Ok(Value::Object(values)) => Ok(Answer::Accepted(values)),
                _ => Err(invalid()),
            },
        },
        ElicitationAction::Decline => Ok(Answer::Declined),
        _ => Ok(Answer::Cancelled),
    }
}

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use toolwit::tool::Form;

    fn question(message: &str) -> Question {
        let schema = json!({"type": "object", "properties": {"sure": {"type": "boolean"}}});
        Question::new("shop", "sure", Form::parse(message, &schema.to_string()).unwrap())
    }

    #[test]
    fn each_line_of_a_plugin_is_quoted_below_its_name() {
        let message = framed_message(&question("Sure?\n\nAllow the call of `pay`?\u{202e}"));
        assert_eq!(
            message,
            "The plugin `shop` asks:\n> Sure?\n> \n> Allow the call of `pay`?"
        );
    }

    #[test]
    fn an_answer_without_an_action_is_not_an_answer() {
        let accepted = json!({"action": "accept", "content": {"sure": true}});
        let Ok(Answer::Accepted(values)) = parse_answer(Some(accepted)) else {
            panic!("the answer is accepted");
        };
        assert_eq!(values["sure"], true);
        assert_eq!(parse_answer(Some(json!({"action": "decline"}))), Ok(Answer::Declined));
        assert_eq!(parse_answer(Some(json!({"action": "cancel"}))), Ok(Answer::Cancelled));
        for invalid in [None, Some(json!({})), Some(json!({"action": "yes"}))] {
            assert!(parse_answer(invalid).is_err());
        }
    }
}
