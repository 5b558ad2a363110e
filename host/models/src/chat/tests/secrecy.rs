//! Tests that a key is sent only to its provider.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

use super::raw::{RawServer, ServerAction, TLS_HANDSHAKE};
use super::*;

const KEY: &str = "sk-very-secret";

thread_local! {
    /// The log of this thread, if its test records the log.
    static THREAD_LOG: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Writes to [`THREAD_LOG`], if the test of the thread records the log.
struct ThreadLogWriter;

impl io::Write for ThreadLogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        THREAD_LOG.with_borrow_mut(|log| log.as_mut().map(|log| log.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts recording the log of this thread. All threads share one subscriber. With one subscriber per thread, a callsite
/// that another thread registers at the same time could stay disabled.
fn record_log() {
    static SUBSCRIBER: Once = Once::new();
    SUBSCRIBER.call_once(|| {
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(|| ThreadLogWriter)
            .finish();
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
    THREAD_LOG.set(Some(Vec::new()));
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
    for debug_text in [
        format!("{malformed:?}"),
        format!("{:?}", toolwit_core::Error::from(malformed)),
        format!("{model:?}"),
    ] {
        assert!(!debug_text.contains("very-secret"), "{debug_text}");
    }
    let log = String::from_utf8(THREAD_LOG.take().unwrap()).unwrap();
    assert!(log.contains("retrying the request to the provider"), "{log}");
    assert!(!log.contains("very-secret"), "{log}");
}

#[tokio::test]
async fn a_redirect_is_refused_without_sending_the_key() {
    let redirect_target = server(vec![response("stolen")]).await;
    for status in [301, 302, 303, 307, 308] {
        let location = format!("{}/v1/chat/completions?{KEY}", redirect_target.uri());
        let provider = server(vec![ResponseTemplate::new(status).insert_header("location", location)]).await;
        let model = client(&provider.uri()).key(Secret::new(KEY)).build().unwrap();
        let error = infer(&model).await.unwrap_err();
        assert!(
            matches!(&error, ModelError::Refused { status: actual, .. } if *actual == status),
            "{error}"
        );
        assert!(
            error.to_string().contains("it redirects to `127.0.0.1`") && !error.to_string().contains(KEY),
            "{error}"
        );
        assert_eq!(request_count(&provider).await, 1);
    }
    assert_eq!(request_count(&redirect_target).await, 0);
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
    assert_eq!(hello.first(), Some(&TLS_HANDSHAKE), "a TLS handshake starts");
    assert!(!String::from_utf8_lossy(&hello).contains(KEY));
}
