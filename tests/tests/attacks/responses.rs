//! Servers that send more, or longer, than a call may take.

use std::time::{Duration, Instant};

use serde_json::json;
use toolwit::ErrorKind;

use crate::network::{full_request, host_for, request};
use crate::server::{Answer, Server};

// attack: B13
#[tokio::test]
async fn download_is_limited_in_bytes_and_time() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let endless = Server::start(Answer::Endless(head.clone(), vec![b'x'; 64 << 10])).await;
    let host = host_for(&endless).await;
    let message = host
        .failure("fetch", request(&format!("api.example.com:{}", endless.port)))
        .await;
    assert!(message.contains("body"), "{message}");
    let silent = Server::start(Answer::Silence(head)).await;
    let host = host_for(&silent).await;
    let started = Instant::now();
    let message = host
        .failure("fetch", request(&format!("api.example.com:{}", silent.port)))
        .await;
    assert!(
        message.contains("body") && started.elapsed() < Duration::from_secs(10),
        "{message}"
    );
}

// attack: K2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn informational_responses_count_as_received() {
    let hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n";
    let one = [&hints[..], b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"].concat();
    let server = Server::start(Answer::Fixed(one)).await;
    let host = host_for(&server).await;
    let reply = host
        .value("fetch", request(&format!("api.example.com:{}", server.port)))
        .await;
    assert_eq!(reply["body"], "fine", "some are allowed");
    let endless = Server::start(Answer::Endless(Vec::new(), hints.repeat(1_000))).await;
    let host = host_for(&endless).await;
    let message = host
        .failure("fetch", request(&format!("api.example.com:{}", endless.port)))
        .await;
    assert!(message.contains("BodySize"), "{message}");
    // The limit is 16 MiB; the buffers of two sockets hold a few more.
    let sent = endless.endless_bytes();
    assert!(sent < 32 << 20, "{sent} bytes were received");
}

// attack: B13
#[tokio::test]
async fn response_with_endless_headers_is_refused() {
    let headers = Server::start(Answer::Endless(
        b"HTTP/1.1 200 OK\r\n".to_vec(),
        b"X-A: aaaaaaaaaaaaaaaaaaaa\r\n".repeat(100),
    ))
    .await;
    let host = host_for(&headers).await;
    host.failure("fetch", request(&format!("api.example.com:{}", headers.port)))
        .await;
}

// attack: B13
#[tokio::test]
async fn requests_of_a_call_are_limited() {
    let server = Server::start(Answer::text("reached")).await;
    let host = host_for(&server).await;
    let answered = host
        .value(
            "hammer",
            json!({"authority": format!("api.example.com:{}", server.port), "times": 50}),
        )
        .await;
    assert_eq!(answered, 20);
    assert_eq!(server.connections(), 20);
}

// attack: B13
#[tokio::test]
async fn request_ends_with_its_call() {
    use toolwit::limits::LimitOverrides;
    let silent = Server::start(Answer::Silence(Vec::new())).await;
    let mut host = host_for(&silent).await;
    host.context = host
        .context
        .clone()
        .with_extension(LimitOverrides::default().with_wall_max(Duration::from_millis(300)));
    let started = Instant::now();
    let ended = host
        .call("fetch", request(&format!("api.example.com:{}", silent.port)))
        .await;
    assert!(started.elapsed() < Duration::from_secs(3));
    assert!(ended.is_err() || ended.is_ok_and(|result| result.is_error()));
}

// attack: B11
#[tokio::test]
async fn endless_header_fields_exceed_their_limit() {
    let server = Server::start(Answer::text("reached")).await;
    let host = host_for(&server).await;
    let authority = format!("api.example.com:{}", server.port);
    let with = |count: usize| {
        let names: Vec<_> = (0..count).map(|number| format!("x-field-{number}")).collect();
        let headers: Vec<_> = names.iter().map(|name| (name.as_str(), "value")).collect();
        full_request("GET", "http", &authority, "/", &headers)
    };
    assert_eq!(host.value("fetch", with(50)).await["status"], json!(200));
    let refused = match host.call("fetch", with(100_000)).await {
        Ok(result) => result.is_error(),
        Err(error) => matches!(
            error.kind,
            ErrorKind::Trap | ErrorKind::HostCalls | ErrorKind::HostCallBytes
        ),
    };
    assert!(refused && server.connections() == 1);
    assert_eq!(
        host.value("fetch", with(1)).await["status"],
        json!(200),
        "the next call works"
    );
}
