//! HTTP requests and sockets of guests, with and without grants.

use serde_json::{Value, json};
use toolwit::ErrorKind;

use crate::host::{Setup, TestHost};
use crate::server::{Answer, ScriptedResolver, Server};

/// Arguments of a request by `probe`.
pub(crate) fn request(authority: &str) -> Value {
    full_request("GET", "http", authority, "/", &[])
}

pub(crate) fn full_request(method: &str, scheme: &str, authority: &str, path: &str, headers: &[(&str, &str)]) -> Value {
    json!({"method": method, "scheme": scheme, "authority": authority, "path": path, "headers": headers, "body": ""})
}

/// A grant of plain HTTP on a port, to a loopback address.
pub(crate) fn on_port(host: &str, port: u16) -> String {
    format!("http = [{{ host = \"{host}\", scheme = \"http\", port = {port}, addresses = [\"127.0.0.1\"] }}]")
}

pub(crate) async fn host_for(server: &Server) -> TestHost {
    let resolver = ScriptedResolver::new(&[&["127.0.0.1"]]);
    Setup::new()
        .grant(&on_port("api.example.com", server.port))
        .resolver(resolver)
        .start()
        .await
}

// attack: C9, J6
#[tokio::test]
async fn no_connection_is_made_without_a_grant() {
    let server = Server::start(Answer::text("reached")).await;
    let authority = format!("127.0.0.1:{}", server.port);
    let denied = Setup::new().start().await;
    let error = denied.denial("fetch", request(&authority)).await;
    assert!(error.message.contains(&authority), "{error}");
    let suggestion = &error.denied[0].suggestion;
    assert!(
        suggestion.ends_with("` to `probe` under `http` in the grants file"),
        "the operator reads it: {suggestion}"
    );
    let read_by_model = serde_json::to_string(&error).unwrap();
    assert!(
        error.suggestion.is_none() && !read_by_model.contains("grants file"),
        "{read_by_model}"
    );
    assert_eq!(server.connections(), 0);
    let granted = Setup::new().grant(&on_port("127.0.0.1", server.port)).start().await;
    let reply = granted.value("fetch", request(&authority)).await;
    assert_eq!(
        (reply["status"].clone(), reply["body"].clone()),
        (json!(200), json!("reached"))
    );
    assert_eq!(server.connections(), 1);
}

// attack: C10, attack: C11
#[tokio::test]
async fn only_the_granted_host_is_connected_to() {
    let server = Server::start(Answer::text("reached")).await;
    let host = host_for(&server).await;
    let port = server.port;
    for same in ["api.example.com", "API.EXAMPLE.COM", "api.example.com."] {
        let reply = host.value("fetch", request(&format!("{same}:{port}"))).await;
        assert_eq!(reply["body"], "reached", "{same}");
    }
    let seen = server.requests();
    assert!(
        seen.iter()
            .all(|request| request.contains(&format!("\r\nhost: api.example.com:{port}\r\n"))),
        "{seen:?}"
    );
    let reached = server.connections();
    for other in [
        "evil.com",
        "api.example.com.evil.com",
        "xapi.example.com",
        "%61pi.example.com",
        "127.0.0.1",
        "localhost",
        "2130706433",
        "127.1",
        "0x7f000001",
        "0177.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "0.0.0.0",
        "api.example.com@evil.com",
        "user:pw@api.example.com",
        "evil.com#@api.example.com",
        "api.example.com\\@evil.com",
        "api.example.com ",
        "api.example.com\t",
        "\u{430}pi.example.com",
        "",
    ] {
        let result = host.call("fetch", request(&format!("{other}:{port}"))).await;
        assert!(
            result.is_err_and(|error| error.kind == ErrorKind::Denied) || is_refused(&host, other, port).await,
            "{other}"
        );
    }
    let error = host.denial("fetch", request("api.example.com:8443")).await;
    assert!(
        error.denied[0].reason.contains(&format!("port {port} only")),
        "{error:?}"
    );
    assert_eq!(server.connections(), reached, "no other connection was made");
}

/// Whether the request was refused before any connection.
async fn is_refused(host: &TestHost, authority: &str, port: u16) -> bool {
    let result = host.call("fetch", request(&format!("{authority}:{port}"))).await;
    result.is_ok_and(|result| result.is_error())
}

// attack: C12, attack: C13
#[tokio::test]
async fn granted_name_that_resolves_to_an_internal_address_is_refused() {
    let server = Server::start(Answer::text("reached")).await;
    let grant = format!(
        "http = [{{ host = \"api.example.com\", scheme = \"http\", port = {} }}]",
        server.port
    );
    for inner in [
        "127.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "0.0.0.0",
        "169.254.169.254",
        "100.100.100.200",
        "10.0.0.1",
        "fd00:ec2::254",
        "fe80::1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::1",
    ] {
        for answers in [vec![inner], vec!["93.184.216.34", inner]] {
            let host = Setup::new()
                .grant(&grant)
                .resolver(ScriptedResolver::new(&[&answers]))
                .start()
                .await;
            let error = host
                .denial("fetch", request(&format!("api.example.com:{}", server.port)))
                .await;
            assert!(error.denied[0].reason.contains("address"), "{inner}: {error:?}");
        }
    }
    assert_eq!(server.connections(), 0);
}

// attack: C13
#[tokio::test]
async fn checked_address_is_the_one_connected_to() {
    let (checked, other) = (
        Server::start(Answer::text("checked")).await,
        Server::start(Answer::text("other")).await,
    );
    // A second lookup would return another address.
    let resolver = ScriptedResolver::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let host = Setup::new()
        .grant(&on_port("api.example.com", checked.port))
        .resolver(resolver.clone())
        .start()
        .await;
    let reply = host
        .value("fetch", request(&format!("api.example.com:{}", checked.port)))
        .await;
    assert_eq!(reply["body"], "checked");
    assert_eq!(
        *resolver.queries.lock().unwrap(),
        ["api.example.com"],
        "there is one lookup per request"
    );
    let error = host
        .denial("fetch", request(&format!("api.example.com:{}", checked.port)))
        .await;
    assert!(error.denied[0].reason.contains("127.0.0.2"), "{error:?}");
    assert_eq!(other.connections(), 0);
}

// attack: C14
#[tokio::test]
async fn redirects_are_not_followed() {
    let inner = Server::start(Answer::text("inner")).await;
    for target in [
        format!("http://127.0.0.1:{}/", inner.port),
        "file:///etc/passwd".to_owned(),
        "https://evil.com/".to_owned(),
    ] {
        let answer = format!("HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n");
        let outer = Server::start(Answer::Fixed(answer.into_bytes())).await;
        let host = host_for(&outer).await;
        let reply = host
            .value("fetch", request(&format!("api.example.com:{}", outer.port)))
            .await;
        assert_eq!(reply["status"], 302);
        // The guest may follow the redirect itself. Then the grants decide about that request too.
        host.denial("fetch", request(&format!("127.0.0.1:{}", inner.port)))
            .await;
    }
    assert_eq!(inner.connections(), 0);
}

// attack: C15
#[tokio::test]
async fn guest_cannot_set_framing_headers() {
    let server = Server::start(Answer::text("reached")).await;
    let host = host_for(&server).await;
    let authority = format!("api.example.com:{}", server.port);
    for header in [
        ("Host", "evil.com"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "keep-alive, x"),
        ("Keep-Alive", "1"),
        ("Proxy-Authorization", "Basic eA=="),
        ("Proxy-Anything", "x"),
        ("Upgrade", "websocket"),
        ("TE", "trailers"),
        ("Expect", "100-continue"),
        ("X-A", "b\r\nX-Smuggled: c"),
        ("X-A", "b\nc"),
        ("X A", "b"),
        ("X-A:", "b"),
        (":authority", "evil.com"),
        ("", "b"),
    ] {
        let message = host
            .failure("fetch", full_request("GET", "http", &authority, "/", &[header]))
            .await;
        assert!(message.contains("header"), "{header:?}: {message}");
    }
    for path in [
        "/ HTTP/1.1\r\nX-Smuggled: c\r\n\r\nGET /",
        "/\r\n",
        "/a b",
        "a",
        "http://evil.com/",
        "//evil.com/\0",
    ] {
        let result = host
            .call("fetch", full_request("GET", "http", &authority, path, &[]))
            .await;
        assert!(
            result.is_err() || result.is_ok_and(|result| result.is_error()),
            "{path:?}"
        );
    }
    let twice = [("Content-Length", "0"), ("Content-Length", "5")];
    let result = host
        .call("fetch", full_request("POST", "http", &authority, "/", &twice))
        .await;
    assert!(result.is_err() || result.is_ok_and(|result| result.is_error()));
    assert_eq!(server.connections(), 0);
    let fine = full_request("GET", "http", &authority, "/a?b=c", &[("X-A", "b"), ("Accept", "*/*")]);
    host.value("fetch", fine).await;
    assert!(
        server.requests()[0].starts_with("GET /a?b=c HTTP/1.1\r\n"),
        "{:?}",
        server.requests()
    );
}

// attack: C16
#[tokio::test]
async fn other_schemes_and_methods_are_refused() {
    let server = Server::start(Answer::text("reached")).await;
    let host = host_for(&server).await;
    let authority = format!("api.example.com:{}", server.port);
    for scheme in ["ftp", "file", "unix", "ws", "wss", "https", ""] {
        let result = host
            .call("fetch", full_request("GET", scheme, &authority, "/", &[]))
            .await;
        assert!(
            result.is_err() || result.is_ok_and(|result| result.is_error()),
            "{scheme}"
        );
    }
    for method in ["CONNECT", "TRACE", "trace", "POST", "get"] {
        let result = host
            .call("fetch", full_request(method, "http", &authority, "/", &[]))
            .await;
        assert!(result.is_err_and(|error| error.kind == ErrorKind::Denied), "{method}");
    }
    assert_eq!(server.connections(), 0);
}

// attack: C17
#[tokio::test]
async fn wildcard_grants_subdomains_only() {
    let server = Server::start(Answer::text("reached")).await;
    let resolver = ScriptedResolver::new(&[&["127.0.0.1"]]);
    let host = Setup::new()
        .grant(&on_port("*.example.com", server.port))
        .resolver(resolver)
        .start()
        .await;
    for subdomain in ["a.example.com", "a.b.example.com"] {
        host.value("fetch", request(&format!("{subdomain}:{}", server.port)))
            .await;
    }
    for other in ["example.com", "evil-example.com", "a.example.com.evil.com"] {
        host.denial("fetch", request(&format!("{other}:{}", server.port))).await;
    }
}

// attack: C18
#[tokio::test]
async fn sockets_and_name_lookup_are_closed_under_every_grant() {
    let server = Server::start(Answer::text("reached")).await;
    let host = Setup::new().grant(&on_port("127.0.0.1", server.port)).start().await;
    host.value("fetch", request(&format!("127.0.0.1:{}", server.port)))
        .await;
    let reached = server.connections();
    let refused = host.denial("connect", json!({"port": server.port})).await;
    assert_eq!(refused.denied[0].access, "open a TCP socket");
    assert!(refused.denied[0].missing_grant.is_none(), "no grant would allow it");
    let refused = host.denial("datagram", json!({"port": server.port})).await;
    assert_eq!(refused.denied[0].access, "open a UDP socket");
    for name in ["localhost", "127.0.0.1", "example.com"] {
        let refused = host.denial("lookup", json!({"name": name})).await;
        assert_eq!(refused.denied[0].access, format!("look up the name `{name}`"));
    }
    assert_eq!(server.connections(), reached);
}

#[tokio::test]
async fn tls_verifies_the_granted_name() {
    // A server without TLS: the handshake must fail, and no part of the request may be sent unencrypted.
    let server = Server::start(Answer::text("reached")).await;
    let grant = format!(
        "http = [{{ host = \"api.example.com\", port = {}, addresses = [\"127.0.0.1\"] }}]",
        server.port
    );
    let host = Setup::new()
        .grant(&grant)
        .resolver(ScriptedResolver::new(&[&["127.0.0.1"]]))
        .start()
        .await;
    let authority = format!("api.example.com:{}", server.port);
    let headers = [("X-Private", "value")];
    host.failure("fetch", full_request("GET", "https", &authority, "/", &headers))
        .await;
    assert_eq!(server.requests(), [""; 0]);
}
