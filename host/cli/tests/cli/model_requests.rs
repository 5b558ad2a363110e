//! Requests to a model over HTTP: pictures, headers, and responses that fail.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::support::Workspace;

/// A GIF of one pixel.
const GIF: &[u8] = b"GIF89a\x01\0\x01\0\0\0\0;";

/// A server of a model. It returns its responses in order, one for each connection.
struct ModelServer {
    address: String,
    /// Returns the head and the body of each request.
    requests: JoinHandle<Vec<(String, Value)>>,
}

impl ModelServer {
    fn start(responses: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = thread::spawn(move || {
            let respond = |response: String| {
                let (mut connection, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                let (head, length) = loop {
                    let mut buffer = [0; 4096];
                    let count = connection.read(&mut buffer).unwrap();
                    request.extend_from_slice(&buffer[..count]);
                    let text = String::from_utf8_lossy(&request).to_lowercase();
                    if let Some((head, _)) = text.split_once("\r\n\r\n") {
                        let length = head.split("content-length: ").nth(1).unwrap();
                        break (
                            head.to_owned(),
                            length.lines().next().unwrap().parse::<usize>().unwrap(),
                        );
                    }
                };
                while request.len() < head.len() + 4 + length {
                    let mut buffer = [0; 4096];
                    let count = connection.read(&mut buffer).unwrap();
                    request.extend_from_slice(&buffer[..count]);
                }
                connection.write_all(response.as_bytes()).unwrap();
                (
                    head.clone(),
                    serde_json::from_slice(&request[head.len() + 4..]).unwrap(),
                )
            };
            responses.into_iter().map(respond).collect()
        });
        Self { address, requests }
    }

    fn model(&self, name: &str) -> String {
        format!("openai:{name}@http://{}/v1", self.address)
    }
}

/// Returns a streamed response with these chunks. The end of the connection ends it.
fn stream(chunks: &[Value]) -> String {
    let events: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}")
}

fn text(text: &str, finish_reason: Option<&str>) -> Value {
    json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish_reason}]})
}

fn answer() -> String {
    stream(&[text("A dot.", Some("stop"))])
}

#[test]
fn an_attached_picture_reaches_a_model_that_takes_pictures() {
    let workspace = Workspace::new().file("dot.gif", GIF);
    let url = "data:image/gif;base64,R0lGODlhAQABAAAAADs=";
    for (name, option, is_sent) in [
        ("gpt-4o", None, true),
        ("my-model", None, false),
        ("my-model", Some("yes"), true),
        ("gpt-4o", Some("no"), false),
    ] {
        let server = ModelServer::start(vec![answer()]);
        let model = server.model(name);
        let mut arguments = vec!["run", "What is it?", "--attach", "dot.gif", "--model", &model];
        arguments.extend(option.into_iter().flat_map(|value| ["--pictures", value]));
        let run = workspace.run(&arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "A dot.\n"), "{run}");
        let content = server.requests.join().unwrap()[0].1["messages"][0]["content"].clone();
        if is_sent {
            let image = json!({"type": "image_url", "image_url": {"url": url}});
            assert_eq!(content, json!([{"type": "text", "text": "What is it?"}, image]));
        } else {
            assert!(
                content.as_str().unwrap().contains("you do not receive a picture"),
                "{content}"
            );
        }
        assert_eq!(run.stderr.contains("does not receive them"), !is_sent, "{run}");
    }
}

#[test]
fn a_file_that_is_not_a_picture_is_refused_before_a_request() {
    let workspace = Workspace::new().file("a.svg", "<svg/>");
    for (file, reason) in [
        ("a.svg", "not a PNG, JPEG, GIF or WebP"),
        ("none.png", "could not be read"),
    ] {
        let run = workspace.run(&[
            "run",
            "See.",
            "--attach",
            file,
            "--model",
            "openai:m@http://127.0.0.1:1/v1",
        ]);
        assert!(run.code == Some(2) && run.stderr.contains(reason), "{run}");
    }
}

#[test]
fn a_chat_attaches_a_picture_to_the_next_message_only() {
    let workspace = Workspace::new().file("dot.gif", GIF);
    let server = ModelServer::start(vec![answer(), answer()]);
    let run = workspace.run_with_input(
        &["chat", "--model", &server.model("gpt-4o")],
        "/attach dot.gif\nWhat is it?\nAnd now?\n/attach none.gif\n",
    );
    assert!(
        run.stderr
            .contains("attached to your next message: image/gif, 14 bytes"),
        "{run}"
    );
    assert!(run.stderr.contains("`none.gif` could not be read"), "{run}");
    let requests = server.requests.join().unwrap();
    let messages = requests[1].1["messages"].as_array().unwrap();
    assert_eq!(messages[0]["content"][1]["type"], "image_url");
    assert_eq!(messages[2]["content"], "And now?");
}

#[test]
fn headers_are_sent_and_neither_shown_nor_stored() {
    let workspace = Workspace::new().variable("TEAM_TOKEN", "hunter2-token");
    let refusal = r#"{"error": "no team hunter2-token"}"#;
    let refused = format!("HTTP/1.1 400 Bad\r\ncontent-length: {}\r\n\r\n{refusal}", refusal.len());
    let server = ModelServer::start(vec![answer(), refused]);
    let model = server.model("m");
    let run = |header: &str| {
        let options = ["--session", "s", "--sessions", "sessions.db", "--model-header", header];
        workspace.run(&[&["run", "Hi.", "--model", &model], &options[..]].concat())
    };
    let answered = run("X-Team=Bearer ${TEAM_TOKEN}");
    assert_eq!(answered.code, Some(0), "{answered}");
    let failed = run("X-Team=${TEAM_TOKEN}");
    assert!(
        failed.stderr.contains("no team") && !failed.to_string().contains("hunter2"),
        "{failed}"
    );
    let unset = run("X-Team=${OTHER}");
    assert!(unset.code == Some(2) && unset.stderr.contains("`OTHER`"), "{unset}");
    let requests = server.requests.join().unwrap();
    assert!(
        requests[0].0.contains("x-team: bearer hunter2-token"),
        "{}",
        requests[0].0
    );
    let stored = std::fs::read(workspace.path().join("sessions.db")).unwrap();
    assert!(!String::from_utf8_lossy(&stored).contains("hunter2"));
}

#[test]
fn a_response_that_fails_midway_is_requested_again_unless_its_text_was_printed() {
    let workspace = Workspace::new();
    let broken = || stream(&[text("A d", None)]);
    let server = ModelServer::start(vec![broken(), answer()]);
    let run = workspace.run(&["run", "What is it?", "--model", &server.model("m")]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "A dot.\n"), "{run}");
    assert_eq!(server.requests.join().unwrap().len(), 2);
    let server = ModelServer::start(vec![broken()]);
    let chat = workspace.run_with_input(&["chat", "--model", &server.model("m")], "What is it?\n");
    assert!(
        chat.stdout.contains("A d") && chat.stderr.contains("ended before it was complete"),
        "{chat}"
    );
}

#[test]
fn an_empty_answer_is_reported() {
    let server = ModelServer::start(vec![stream(&[text("", Some("stop"))])]);
    let run = Workspace::new().run(&["run", "Hi.", "--model", &server.model("m")]);
    assert!(
        run.code == Some(0) && run.stderr.contains("the answer of the model is empty"),
        "{run}"
    );
}
