//! Questions of plugins to a person, log messages and the small HTTP client of `toolwit:plugin`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::{Instant, pause, sleep};
use toolwit::limits::{LimitOverrides, QUESTIONS_MAX};
use toolwit::tool::{Answer, LogLevel, OutputSink, Question, Respondent, Unanswered};
use toolwit::{ErrorKind, ToolContext};

use crate::host::{Setup, TestHost};
use crate::server::{Answer as ServerAnswer, Server};

const ASK: &str = "ask = true";
const HOUR: Duration = Duration::from_secs(3600);

/// A person who always gives the same answer, after some time.
struct Person {
    answer: Result<Answer, Unanswered>,
    time: Duration,
    /// Whether a question ends the call, so that it is repeated.
    repeats_calls: bool,
    questions: Mutex<Vec<Question>>,
}

impl Person {
    fn new(answer: Result<Answer, Unanswered>) -> Self {
        Self {
            answer,
            time: Duration::ZERO,
            repeats_calls: false,
            questions: Mutex::default(),
        }
    }

    fn accepting(values: Value) -> Self {
        Self::new(Ok(Answer::Accepted(values.as_object().unwrap().clone())))
    }

    fn questions(&self) -> Vec<Question> {
        self.questions.lock().unwrap().clone()
    }
}

#[async_trait]
impl Respondent for Person {
    async fn answer(&self, question: &Question, _: &ToolContext) -> Result<Answer, Unanswered> {
        self.questions.lock().unwrap().push(question.clone());
        if !self.time.is_zero() {
            sleep(self.time).await;
        }
        self.answer.clone()
    }

    fn repeats_calls(&self, _: &ToolContext) -> bool {
        self.repeats_calls
    }
}

/// A host with a grant for `inquirer`, and a person who answers.
async fn host_with(grant: &str, person: &Arc<Person>) -> TestHost {
    let mut host = Setup::new().grant_to(&["inquirer"], grant).start().await;
    host.context = host.context.clone().with_respondent(person.clone());
    host
}

fn question(message: &str, properties: Value) -> Value {
    let schema = json!({"type": "object", "properties": properties});
    json!({"message": message, "schema": schema.to_string()})
}

fn name_question() -> Value {
    question("Your name?", json!({"name": {"type": "string"}}))
}

// attack: M6
#[tokio::test]
async fn a_question_needs_a_grant_and_a_person() {
    let person = Arc::new(Person::accepting(json!({"name": "Ada"})));
    let granted = host_with(ASK, &person).await;
    let answer = granted.value("inquire", name_question()).await;
    assert_eq!(answer, json!({"ok": r#"{"name":"Ada"}"#})["ok"], "{answer}");
    let questions = person.questions();
    assert_eq!((&*questions[0].plugin, &*questions[0].key), ("inquirer", "question"));
    assert_eq!(questions[0].form.message(), "Your name?");

    let denied = host_with("config = { a = \"b\" }", &person).await;
    let error = denied.denial("inquire", name_question()).await;
    let access = &error.denied[0];
    assert_eq!(access.access, "ask the user");
    let missing = access.missing_grant.as_ref().unwrap();
    assert_eq!((&*missing.key, &*missing.value), ("ask", "true"));
    assert_eq!(person.questions().len(), 1, "the person was not asked");

    let alone = Setup::new().grant_to(&["inquirer"], ASK).start().await;
    let started = Instant::now();
    let refusal = alone.failure("inquire", name_question()).await;
    assert!(refusal.contains("unavailable: no person can be asked"), "{refusal}");
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "the question is refused at once"
    );
}

#[tokio::test]
async fn a_person_can_decline_and_cancel_and_an_answer_that_does_not_match_is_not_one() {
    for (answer, expected) in [(Answer::Declined, "declined"), (Answer::Cancelled, "cancelled")] {
        let person = Arc::new(Person::new(Ok(answer)));
        let host = host_with(ASK, &person).await;
        assert_eq!(host.value("inquire", name_question()).await, json!(expected));
    }
    for values in [json!({"name": 1}), json!({"other": "x"})] {
        let person = Arc::new(Person::accepting(values));
        let refusal = host_with(ASK, &person).await.failure("inquire", name_question()).await;
        assert!(refusal.contains("unavailable: the answer is not valid"), "{refusal}");
    }
}

// attack: C21, attack: M6
#[tokio::test]
async fn the_text_of_a_form_is_visible_and_a_form_never_asks_for_a_secret() {
    let person = Arc::new(Person::accepting(json!({})));
    let host = host_with(ASK, &person).await;
    let hostile = question(
        "Size?\u{202e}\u{1b}[2J\u{200b}\nAllow the call of `pay`?",
        json!({"size": {"type": "string", "enum": ["s\u{2066}", "l"], "title": "A\nB"}}),
    );
    host.value("inquire", hostile).await;
    let form = person.questions().remove(0).form;
    assert_eq!(form.message(), "Size?[2J\nAllow the call of `pay`?");
    assert_eq!(form.fields()[0].label(), "A B");
    assert_eq!(form.schema()["properties"]["size"]["enum"], json!(["s", "l"]));
    for refused in [
        question("Sign in", json!({"password": {"type": "string"}})),
        question("Sign in", json!({"a": {"type": "string", "title": "API key"}})),
        question("Your pass\u{200b}word?", json!({"a": {"type": "string"}})),
        question("", json!({})),
        question(&"x".repeat(10_000), json!({})),
        json!({"message": "A", "schema": "{"}),
    ] {
        let refusal = host.failure("inquire", refused.clone()).await;
        assert!(refusal.contains("invalid form"), "{refused}: {refusal}");
    }
    assert_eq!(person.questions().len(), 1, "the person was not asked for a secret");
}

// attack: M6
#[tokio::test]
async fn the_number_of_questions_of_a_call_is_limited() {
    let person = Arc::new(Person::accepting(json!({"sure": true})));
    let host = host_with(ASK, &person).await;
    let outcomes = host
        .value("inquire_often", json!({"times": QUESTIONS_MAX + 2, "keys": 100}))
        .await;
    let outcomes: Vec<_> = outcomes
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect();
    let (answered, refused) = outcomes.split_at(QUESTIONS_MAX as usize);
    assert!(answered.iter().all(|text| *text == r#"{"sure":true}"#), "{answered:?}");
    assert!(
        refused.iter().all(|text| text.contains("at most 8 questions")),
        "{refused:?}"
    );
    assert_eq!(person.questions().len(), QUESTIONS_MAX as usize);
    let outcomes = host.value("inquire_often", json!({"times": 2, "keys": 1})).await;
    assert!(outcomes[1].as_str().unwrap().contains("was used before"), "{outcomes}");
}

#[tokio::test]
async fn the_time_of_a_person_does_not_count_for_the_call_and_is_limited() {
    for (time, is_answered) in [(Duration::from_secs(300), true), (HOUR, false)] {
        let person = Arc::new(Person {
            time,
            ..Person::accepting(json!({"name": "Ada"}))
        });
        let limits = LimitOverrides::default().with_wall_max(Duration::from_secs(10));
        let mut host = Setup::new().limits(limits).grant_to(&["inquirer"], ASK).start().await;
        // Compiled before the time stands still.
        host.call("inquire", name_question()).await.ok();
        host.context = host.context.clone().with_respondent(person.clone());
        pause();
        let result = host.call("inquire", name_question()).await.unwrap();
        assert_eq!(!result.is_error(), is_answered, "{}", result.for_llm);
        if !is_answered {
            assert!(
                result.for_llm.contains("limit: no answer arrived within 600 s"),
                "{}",
                result.for_llm
            );
        }
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_call_that_would_be_repeated_asks_before_it_changes_something() {
    let server = Server::start(ServerAnswer::text("fine")).await;
    let person = Arc::new(Person {
        repeats_calls: true,
        ..Person::new(Err(Unanswered::CallRepeats))
    });
    let grant = format!(
        "{ASK}\nhttp = [{{ host = \"127.0.0.1\", scheme = \"http\", port = {}, methods = [\"GET\", \"POST\"] }}]",
        server.port
    );
    let host = host_with(&grant, &person).await;
    let arguments = |method: &str| json!({"method": method, "url": format!("http://127.0.0.1:{}/", server.port)});
    let outcomes = host.value("send_and_inquire", arguments("POST")).await;
    let refusal = outcomes[1].as_str().unwrap();
    assert!(refusal.contains("has already changed something"), "{refusal}");
    assert!(person.questions().is_empty());
    let ended = host.call("send_and_inquire", arguments("GET")).await.unwrap_err();
    assert_eq!(
        ended.kind,
        ErrorKind::Trap,
        "the guest does not continue after the question: {ended}"
    );
    assert_eq!(person.questions().len(), 1);
}

/// An output that records log messages.
#[derive(Default)]
struct LogSink(Mutex<Vec<(LogLevel, String, String)>>);

impl OutputSink for LogSink {
    fn progress(&self, _: &str) {}

    fn communicate(&self, _: &str) {}

    fn accepts_log(&self) -> bool {
        true
    }

    fn log(&self, level: LogLevel, logger: &str, text: &str) {
        self.0.lock().unwrap().push((level, logger.to_owned(), text.to_owned()));
    }
}

#[tokio::test]
async fn log_messages_have_their_severity_and_no_control_characters() {
    let mut host = Setup::new().start().await;
    let result = host
        .call("record_all", json!({"text": "\u{1b}[2Jhello"}))
        .await
        .unwrap();
    let log = result.log.unwrap();
    assert!(log.starts_with("debug: [2Jhello\ninfo: [2Jhello\n"), "{log}");
    let sink = Arc::new(LogSink::default());
    host.context = host.context.clone().with_output(sink.clone());
    let result = host
        .call("record_all", json!({"text": "\u{1b}[2Jhello"}))
        .await
        .unwrap();
    assert_eq!(result.log, None, "the output accepts the messages");
    let messages = sink.0.lock().unwrap();
    assert_eq!(messages.len(), 8);
    assert_eq!(
        messages[0],
        (LogLevel::Debug, "inquirer".to_owned(), "[2Jhello".to_owned())
    );
    assert!(messages.is_sorted_by_key(|(level, ..)| *level));
}

#[tokio::test]
async fn a_request_through_the_small_client_needs_the_same_grant_as_with_wasi() {
    let server = Server::start(ServerAnswer::Echo).await;
    let url = format!("http://127.0.0.1:{}/a?b=c", server.port);
    let send = |method: &str, headers: Value| json!({"method": method, "url": url, "headers": headers, "body": "text"});
    let grant = format!(
        "http = [{{ host = \"127.0.0.1\", scheme = \"http\", port = {}, methods = [\"POST\"] }}]",
        server.port
    );
    let host = Setup::new().grant_to(&["inquirer"], &grant).start().await;
    let reply = host
        .value(
            "send",
            send("POST", json!([["x-a", "1"], ["x-a", "2"], ["content-length", "4"]])),
        )
        .await;
    assert_eq!(reply["status"], 200);
    let request = reply["body"].as_str().unwrap();
    assert!(request.starts_with("POST /a?b=c HTTP/1.1\r\n"), "{request}");
    assert_eq!(request.matches("x-a: ").count(), 2, "{request}");
    assert_eq!(
        request.to_lowercase().matches("content-length: 4").count(),
        1,
        "{request}"
    );
    assert!(
        reply["headers"]
            .as_array()
            .unwrap()
            .iter()
            .any(|header| header[0] == "x-echo")
    );

    let error = host.denial("send", send("GET", json!([]))).await;
    assert!(error.message.contains("it may not send"), "{error}");
    for headers in [
        json!([["host", "other.example"]]),
        json!([["proxy-authorization", "x"]]),
        json!([["content-length", "5"]]),
        json!([["bad name", "x"]]),
        json!([["x-a", "line\r\nbreak"]]),
    ] {
        let refusal = host.failure("send", send("POST", headers.clone())).await;
        assert!(refusal.contains("invalid: "), "{headers}: {refusal}");
    }
    for url in ["", "/relative", "http://", "not a url"] {
        let mut arguments = send("POST", json!([]));
        arguments["url"] = json!(url);
        assert!(host.failure("send", arguments).await.contains("invalid: "), "{url}");
    }
    assert_eq!(server.requests().len(), 1, "no refused request was sent");
    let without_grant = Setup::new().start().await;
    without_grant.denial("send", send("POST", json!([]))).await;
}
