//! A key is sent to its provider only.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

use super::raw::{RawServer, ServerAction};
use super::*;

const KEY: &str = "sk-very-secret";

thread_local! {
    /// The log of this thread, if a test records it.
    static LOGGED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Records the log of threads that enabled it.
struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.as_mut().map(|logged| logged.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts recording the log of this thread. The process has one subscriber: with one per thread, a callsite that another
/// thread registers at the same time could stay disabled.
fn record_log() {
    static LISTENING: Once = Once::new();
    LISTENING.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(|| Log)
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
    LOGGED.set(Some(Vec::new()));
}

#[tokio::test]
async fn a_key_that_the_provider_echoes_does_not_appear_in_errors_and_logs() {
    record_log();
    let echo = |status| ResponseTemplate::new(status).set_body_string(format!("no such key: {KEY}"));
    let html = ResponseTemplate::new(200).set_body_raw(KEY, &format!("text/{KEY}"));
    let server = server(vec![echo(503), echo(401), html]).await;
    let model = client(&server.uri()).key(Secret::new(KEY)).build().unwrap();
    let refused = infer(&model).await.unwrap_err();
    let expected = ModelError::Refused {
        status: 401,
        message: "no such key: [redacted]".into(),
    };
    assert_eq!(refused, expected);
    let malformed = infer(&model).await.unwrap_err();
    assert!(matches!(malformed, ModelError::Malformed { .. }));
    for shown in [
        format!("{malformed:?}"),
        format!("{:?}", toolwit_core::Error::from(malformed)),
        format!("{model:?}"),
    ] {
        assert!(!shown.contains("very-secret"), "{shown}");
    }
    let log = String::from_utf8(LOGGED.take().unwrap()).unwrap();
    assert!(log.contains("retrying the request to the provider"), "{log}");
    assert!(!log.contains("very-secret"), "{log}");
}

#[tokio::test]
async fn a_redirect_is_refused_without_sending_the_key() {
    let elsewhere = server(vec![response("stolen")]).await;
    for status in [301, 302, 303, 307, 308] {
        let location = format!("{}/v1/chat/completions?{KEY}", elsewhere.uri());
        let here = server(vec![ResponseTemplate::new(status).insert_header("location", location)]).await;
        let model = client(&here.uri()).key(Secret::new(KEY)).build().unwrap();
        let error = infer(&model).await.unwrap_err();
        assert!(
            matches!(&error, ModelError::Refused { status: found, .. } if *found == status),
            "{error}"
        );
        assert!(
            error.to_string().contains("it redirects to `127.0.0.1`") && !error.to_string().contains(KEY),
            "{error}"
        );
        assert_eq!(requests(&here).await, 1);
    }
    assert_eq!(requests(&elsewhere).await, 0);
}

#[tokio::test]
async fn over_https_nothing_is_sent_before_the_server_is_authenticated() {
    let mut server = RawServer::start(vec![ServerAction::Send("HTTP/1.1 200 OK\r\n\r\n")]).await;
    let url = server.url.replace("http://", "https://");
    let model = client(&url)
        .key(Secret::new(KEY))
        .retry(RetryPolicy::never())
        .build()
        .unwrap();
    let error = infer(&model).await.unwrap_err();
    assert!(matches!(error, ModelError::Unavailable { attempts: 1, .. }), "{error}");
    let hello = server.requests.recv().await.unwrap();
    assert_eq!(hello.first(), Some(&0x16), "a TLS handshake starts");
    assert!(!String::from_utf8_lossy(&hello).contains(KEY));
}
