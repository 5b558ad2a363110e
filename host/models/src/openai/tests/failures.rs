//! What happens when the provider fails, hangs or sends nonsense.

use super::raw::{Act, RawServer};
use super::*;

fn failing(status: u16) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(json!({"error": {"message": "why", "type": "x"}}))
}

// attack: F5
#[tokio::test]
async fn what_may_pass_is_asked_again_a_bounded_number_of_times() {
    for status in [408, 409, 429, 500, 503, 529] {
        let server = server(vec![failing(status)]).await;
        let error = ask(&client(&server.uri()).build().unwrap()).await.unwrap_err();
        let expected = ModelError::Unavailable {
            attempts: 4,
            message: format!("status {status}: why"),
            status: Some(status),
        };
        assert_eq!((error, requests(&server).await), (expected, 4));
    }
    let server = server(vec![failing(503), failing(429), said("at last")]).await;
    assert_eq!(
        ask(&client(&server.uri()).build().unwrap()).await.unwrap().content,
        "at last"
    );
    assert_eq!(requests(&server).await, 3);
}

// attack: F5
#[tokio::test]
async fn what_will_not_pass_is_asked_once() {
    for status in [400, 401, 403, 404, 422] {
        let server = server(vec![failing(status)]).await;
        let error = ask(&client(&server.uri()).build().unwrap()).await.unwrap_err();
        let message = "why".to_owned();
        assert_eq!(
            (error, requests(&server).await),
            (ModelError::Refused { status, message }, 1)
        );
    }
}

// attack: F5
#[tokio::test]
async fn retry_after_is_kept_to_or_the_request_fails_at_once() {
    let after = |value: &str| failing(429).insert_header("retry-after", value);
    for (value, expected) in [
        ("0", 2),
        ("-1", 2),
        ("soon", 2),
        ("86400", 1),
        ("Fri, 31 Dec 2100 23:59:59 GMT", 1),
    ] {
        let server = server(vec![after(value), said("at last")]).await;
        let result = ask(&client(&server.uri()).build().unwrap()).await;
        assert_eq!(
            (result.is_ok(), requests(&server).await),
            (expected == 2, expected),
            "{value}"
        );
    }
}

// attack: F5
#[tokio::test]
async fn an_error_with_status_200_is_treated_by_its_code() {
    let told =
        |code: Value| ResponseTemplate::new(200).set_body_json(json!({"error": {"message": "why", "code": code}}));
    let busy = server(vec![told(json!(429)), said("at last")]).await;
    assert_eq!(
        ask(&client(&busy.uri()).build().unwrap()).await.unwrap().content,
        "at last"
    );
    let wrong = server(vec![told(json!("invalid_model"))]).await;
    let error = ask(&client(&wrong.uri()).build().unwrap()).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 200, .. }), "{error}");
    assert_eq!(requests(&wrong).await, 1);
}

// attack: F7
#[tokio::test]
async fn nonsense_with_status_200_is_malformed_and_asked_once() {
    let ok = || ResponseTemplate::new(200);
    let cases = [
        (
            ok().set_body_raw("<html>Sign in</html>", "text/html"),
            "of content type `text/html`",
        ),
        (ok(), "0 bytes"),
        (ok().set_body_raw("{\"choices\": []}", "application/json"), "no choices"),
        (
            ok().set_body_raw("\u{1f}\u{8b}", "application/json")
                .insert_header("content-encoding", "gzip"),
            "compressed (`gzip`)",
        ),
        (said(&"x".repeat(2_000)), "more than 1000 bytes"),
    ];
    for (response, why) in cases {
        let server = server(vec![response]).await;
        let model = client(&server.uri()).response_bytes_max(1_000).build().unwrap();
        let error = ask(&model).await.unwrap_err();
        assert!(
            matches!(&error, ModelError::Malformed { message } if message.contains(why)),
            "{error}"
        );
        assert_eq!(requests(&server).await, 1);
    }
}

// attack: F7
#[tokio::test]
async fn a_body_without_end_is_cut_off() {
    const CHUNK: &str = "10\r\n                \r\n";
    let good = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let bad = "HTTP/1.1 400 Bad Request\r\ntransfer-encoding: chunked\r\n\r\n";
    let server = RawServer::start(vec![Act::Flood(good, CHUNK), Act::Flood(bad, CHUNK)]).await;
    let model = client(&server.url).response_bytes_max(100_000).build().unwrap();
    let error = ask(&model).await.unwrap_err();
    assert!(error.to_string().contains("more than 100000 bytes"), "{error}");
    let error = ask(&model).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 400, .. }), "{error}");
}

// attack: F7
#[tokio::test]
async fn a_lost_connection_is_made_again() {
    const CUT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choices\": [";
    const WHOLE: &str =
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"choices\": [{\"message\": {\"content\": \"at last\"}}]}";
    let server = RawServer::start(vec![Act::Send(""), Act::Send(CUT), Act::Send(WHOLE)]).await;
    assert_eq!(
        ask(&client(&server.url).build().unwrap()).await.unwrap().content,
        "at last"
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let error = ask(&client(&url).build().unwrap()).await.unwrap_err();
    assert!(
        matches!(
            error,
            ModelError::Unavailable {
                attempts: 4,
                status: None,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        !error.to_string().contains("http://"),
        "the URL may hold a key: {error}"
    );
}

// attack: F7
#[tokio::test]
async fn a_silent_server_is_given_up_after_the_timeout_and_not_asked_again() {
    let mut server = RawServer::start(vec![Act::Hang, Act::Hang]).await;
    let error = ask(&client(&server.url).request_timeout_ms(200).build().unwrap())
        .await
        .unwrap_err();
    let expected = ModelError::Unavailable {
        attempts: 1,
        message: "no whole answer within 200 ms".into(),
        status: None,
    };
    assert_eq!(error, expected);
    assert!(server.asked.recv().await.is_some() && server.asked.try_recv().is_err());
}

// accept: 133
#[tokio::test]
async fn cancelling_ends_a_request_at_once() {
    const BUSY: &str = "HTTP/1.1 503 Busy\r\nretry-after: 50\r\ncontent-length: 0\r\n\r\n";
    // While the provider is silent, and while the client waits to ask again.
    for act in [Act::Hang, Act::Send(BUSY)] {
        let mut server = RawServer::start(vec![act]).await;
        let model = client(&server.url).build().unwrap();
        let cancel = CancellationToken::new();
        let cancelling = async {
            server.asked.recv().await;
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(ask_until(&model, &cancel), cancelling);
        assert_eq!(result, Err(ModelError::Cancelled));
    }
}

#[tokio::test]
async fn a_cancelled_request_is_never_sent() {
    let server = server(vec![said("hello")]).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let model = client(&server.uri()).build().unwrap();
    assert_eq!(ask_until(&model, &cancel).await, Err(ModelError::Cancelled));
    assert_eq!(requests(&server).await, 0);
}
