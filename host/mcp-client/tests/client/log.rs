//! The log of the client, which servers must not fill or read from.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use toolwit_agent::ToolSource;
use toolwit_core::{Error, ToolContext};
use toolwit_mcp_client::{
    ClientOptions, McpServer, RevisionChoice, ServerAnswer, ServerQuestion, ServerRequests, SettingValue, ValueSource,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use zeroize::Zeroizing;

use crate::{call, config, works};

/// The lines of a log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Level, String)>>>);

impl Log {
    fn lines(&self) -> Vec<(Level, String)> {
        self.0.lock().unwrap().clone()
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().target().to_owned());
        event.record(&mut line);
        self.0.lock().unwrap().push((*event.metadata().level(), line.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

const SECRET: &str = "correct horse battery";

/// Has one secret.
struct Values;

impl ValueSource for Values {
    fn secret(&self, _: &str) -> Result<Option<Zeroizing<String>>, Error> {
        Ok(Some(Zeroizing::new(SECRET.to_owned())))
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

/// Records the questions of servers.
#[derive(Clone, Default)]
struct Person(Arc<Mutex<Vec<ServerQuestion>>>);

#[async_trait]
impl ServerRequests for Person {
    fn answers_questions(&self) -> bool {
        true
    }

    async fn answer(&self, question: ServerQuestion) -> ServerAnswer {
        self.0.lock().unwrap().push(question);
        ServerAnswer::Declined
    }
}

// attack: G9
#[tokio::test]
async fn a_secret_in_a_log_message_a_question_or_a_description_is_redacted() {
    let (log, person) = (Log::default(), Person::default());
    let _guard = tracing::subscriber::set_default(log.clone());
    let config = config("reveals-secret").with_variable("API_KEY", SettingValue::secret("key"));
    let options = ClientOptions::default()
        .with_values(Values)
        .with_requests(person.clone());
    let server = McpServer::new(config, options);
    let tools = server.tools(&ToolContext::new()).await.unwrap();
    assert_eq!(tools[0].definition().description, "Adds with [redacted].");
    assert_eq!(call(&server, "echo", json!({})).await.unwrap().for_llm, "revealed");

    let question = person.0.lock().unwrap().pop().unwrap();
    assert_eq!(question.message, "Is [redacted] right?");
    assert_eq!(question.schema["properties"]["p"]["description"], "[redacted]");
    let own = log.lines().into_iter().filter(|(_, line)| line.starts_with("toolwit"));
    let logged: Vec<_> = own
        .map(|(_, line)| line)
        .filter(|line| line.contains("logged a message"))
        .collect();
    assert_eq!(logged.len(), 1, "{logged:?}");
    assert!(
        logged[0].contains("xx[redacted]") && !logged[0].contains("correct"),
        "{}",
        logged[0]
    );
}

// attack: G9
#[tokio::test]
async fn a_flood_of_requests_does_not_fill_the_log() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let config = config("floods-requests").with_revision(RevisionChoice::Handshake);
    let server = McpServer::new(config, ClientOptions::default());
    works(&server).await;
    let lines = log.lines();
    let warnings: Vec<_> = lines.iter().filter(|(level, _)| *level <= Level::WARN).collect();
    assert!(warnings.len() < 2_000, "{} of 20,000 requests", warnings.len());
    let errors: Vec<_> = warnings.iter().filter(|(level, _)| *level == Level::ERROR).collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert!(
        warnings.iter().any(|(_, line)| line.contains("more than 600 requests")),
        "{warnings:?}"
    );
}
