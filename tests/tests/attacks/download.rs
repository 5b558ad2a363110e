//! Downloads of packages from hostile servers.

use std::process::Command;
use std::time::Duration;

use toolwit::ErrorKind;
use toolwit::download::HttpDownloader;
use toolwit::registry::{Download, FileUrl};

use crate::server::{Answer, Server};
use crate::tls::Authority;

const WALL_MAX: Duration = Duration::from_secs(20);

async fn download(url: &str, bytes_max: u64) -> Result<Vec<u8>, toolwit::Error> {
    let downloader = HttpDownloader::new(WALL_MAX).unwrap();
    downloader.download(&FileUrl::parse(url).unwrap(), bytes_max).await
}

fn url(server: &Server) -> String {
    format!("http://127.0.0.1:{}/calc.wasm", server.port)
}

fn redirect(target: &str) -> Answer {
    Answer::Fixed(format!("HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n").into_bytes())
}

#[tokio::test]
async fn file_within_its_limit_is_downloaded_without_credentials() {
    let server = Server::start(Answer::text("12345")).await;
    assert_eq!(download(&url(&server), 5).await.unwrap(), b"12345");
    let request = server.requests().concat().to_ascii_lowercase();
    assert!(request.starts_with("get /calc.wasm http/1.1"), "{request}");
    for header in ["authorization", "cookie", "referer", "proxy"] {
        assert!(!request.contains(header), "{request}");
    }
    let error = download(&url(&server), 4).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::FileBytes, "{error}");
}

#[tokio::test]
async fn endless_file_ends_at_its_limit() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    let server = Server::start(Answer::Endless(head, vec![0; 1 << 10])).await;
    let error = download(&url(&server), 1 << 20).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::FileBytes, "{error}");
}

#[tokio::test]
async fn slow_server_reaches_the_time_limit() {
    for head in ["", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n123"] {
        let server = Server::start(Answer::Silence(head.into())).await;
        let downloader = HttpDownloader::new(Duration::from_millis(200)).unwrap();
        let error = downloader
            .download(&FileUrl::parse(&url(&server)).unwrap(), 5)
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
        assert!(error.message.contains("200 ms"), "{error}");
    }
}

#[tokio::test]
async fn incomplete_file_and_error_status_are_errors() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ncut",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nweb",
        "junk",
    ] {
        let server = Server::start(Answer::Fixed(answer.into())).await;
        let error = download(&url(&server), 100).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Io, "{answer}: {error}");
    }
}

#[tokio::test]
async fn redirect_is_followed_unless_it_leaves_this_machine_unencrypted() {
    let server = Server::start(Answer::text("12345")).await;
    let redirecting = Server::start(redirect(&url(&server))).await;
    assert_eq!(download(&url(&redirecting), 5).await.unwrap(), b"12345");

    for target in [
        "http://example.com/calc.wasm",
        "http://10.0.0.1/",
        "ftp://example.com/",
        "//user:key@127.0.0.1/",
    ] {
        let redirecting = Server::start(redirect(target)).await;
        let error = download(&url(&redirecting), 5).await.unwrap_err();
        assert!(error.message.contains("a redirect was refused"), "{target}: {error}");
    }
}

#[tokio::test]
async fn redirects_are_limited() {
    let server = Server::start(redirect("/calc.wasm")).await;
    let error = download(&url(&server), 5).await.unwrap_err();
    assert!(error.message.contains("more than 5 redirects"), "{error}");
    assert_eq!(server.requests().len(), 6);
}

/// The variable that passes the URL to the child process below.
const URL: &str = "TOOLWIT_TEST_URL";

/// Downloads in a process that trusts only this authority. Returns the message of the outcome.
#[cfg(target_os = "linux")]
async fn download_trusting(authority: &Authority, port: u16) -> String {
    let directory = tempfile::tempdir().unwrap();
    let roots = directory.path().join("roots.pem");
    std::fs::write(&roots, &authority.pem).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args([
            "--exact",
            "--ignored",
            "--nocapture",
            "download::downloads_once_with_the_system_roots",
        ])
        .env("SSL_CERT_FILE", &roots)
        .env_remove("SSL_CERT_DIR")
        .env(URL, format!("https://localhost:{port}/calc.wasm"));
    let output = tokio::task::spawn_blocking(move || child.output())
        .await
        .unwrap()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let outcome = text.lines().find_map(|line| line.split_once("outcome: "));
    outcome.unwrap_or_else(|| panic!("{text}")).1.to_owned()
}

// On other systems the system's own store decides.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn certificate_is_checked_and_encryption_is_not_left() {
    let (trusted, untrusted) = (Authority::new(), Authority::new());
    let server = trusted.answering("localhost", Answer::text("12345")).await;
    assert_eq!(download_trusting(&trusted, server.port).await, "12345");
    let refused = download_trusting(&untrusted, server.port).await;
    assert!(refused.contains("could not be downloaded"), "{refused}");
    let impostor = trusted.answering("example.com", Answer::text("12345")).await;
    let refused = download_trusting(&trusted, impostor.port).await;
    assert!(refused.contains("could not be downloaded"), "{refused}");

    let encrypted = format!("https://localhost:{}/", server.port);
    let redirecting = trusted.answering("localhost", redirect(&encrypted)).await;
    assert_eq!(download_trusting(&trusted, redirecting.port).await, "12345");
    let plain = Server::start(Answer::text("12345")).await;
    let redirecting = trusted.answering("localhost", redirect(&url(&plain))).await;
    let refused = download_trusting(&trusted, redirecting.port).await;
    assert!(refused.contains("not encrypted"), "{refused}");
    assert_eq!(plain.connections(), 0);
}

#[tokio::test]
#[ignore = "run by the test above, in a process with another environment"]
async fn downloads_once_with_the_system_roots() {
    #[expect(clippy::disallowed_methods, reason = "the variable is set by the test above")]
    let url = std::env::var(URL).unwrap();
    let outcome = match download(&url, 5).await {
        Ok(content) => String::from_utf8(content).unwrap(),
        Err(error) => error.to_string(),
    };
    #[expect(clippy::print_stdout, reason = "the test above reads it")]
    {
        println!("outcome: {outcome}");
    }
}
