//! Secrets over TLS: sent only to a server that proves its name.

use std::process::Command;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde_json::{Value, json};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use toolwit::ErrorKind;
use toolwit::limits::LimitOverrides;

use crate::host::{Setup, TestHost};
use crate::server::{Answer, ScriptedResolver, Server};

const NAME: &str = "api.example.com";
const VALUE: &str = "hunter2-and-more";

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// Starts a server with a certificate for this name.
    async fn server(&self, name: &str) -> Server {
        self.answering(name, Answer::Echo).await
    }

    /// Starts a server with a certificate for this name and a response.
    pub(crate) async fn answering(&self, name: &str, answer: Answer) -> Server {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        Server::start_tls(answer, config).await
    }
}

/// Grants the secret for a port of the host, over both schemes.
fn granting(port: u16) -> Setup {
    let rule = |scheme: &str| {
        format!("{{ host = \"{NAME}\", scheme = \"{scheme}\", port = {port}, addresses = [\"127.0.0.1\"] }}")
    };
    let lines = format!(
        "http = [{}, {}]\nsecrets = [{{ name = \"key\", host = \"{NAME}\", port = {port}, bearer = true }}]",
        rule("https"),
        rule("http")
    );
    Setup::new()
        .grant(&lines)
        .resolver(ScriptedResolver::new(&[&["127.0.0.1"]]))
        .secret("key", VALUE)
}

fn request(scheme: &str, port: u16) -> Value {
    let headers = [("authorization", "Bearer of-the-guest"), ("x-private", "value")];
    json!({"method": "GET", "scheme": scheme, "authority": format!("{NAME}:{port}"), "path": "/", "headers": headers,
        "body": ""})
}

/// Sends a request over HTTPS, which must fail before anything is sent.
async fn assert_nothing_is_sent_to(host: &TestHost, server: &Server) {
    host.failure("fetch", request("https", server.port)).await;
    assert_eq!(server.connections(), 1, "a connection was opened");
    assert_eq!(server.requests(), [""; 0], "no request was sent");
}

// attack: C14, attack: C19
#[tokio::test]
async fn secret_reaches_the_granted_host_over_tls_and_no_impostor() {
    let (trusted, untrusted) = (Authority::new(), Authority::new());
    let server = trusted.server(NAME).await;
    let host = granting(server.port).roots(&trusted.pem).start().await;
    let reply = host.value("fetch", request("https", server.port)).await;
    let seen = server.requests().concat();
    assert!(
        seen.contains(&format!("\r\nauthorization: Bearer {VALUE}\r\n")),
        "{seen}"
    );
    assert!(!seen.contains("of-the-guest"), "{seen}");
    assert_eq!(reply["status"], json!(200));
    assert!(!reply.to_string().contains(VALUE), "the echo of the secret is masked");

    let impostor = untrusted.server(NAME).await;
    assert_nothing_is_sent_to(&granting(impostor.port).roots(&trusted.pem).start().await, &impostor).await;
    let other = trusted.server("other.example.com").await;
    assert_nothing_is_sent_to(&granting(other.port).roots(&trusted.pem).start().await, &other).await;
    // The system does not know the authority, and the host does not name it.
    let unknown = trusted.server(NAME).await;
    assert_nothing_is_sent_to(&granting(unknown.port).start().await, &unknown).await;
}

// attack: K5
#[tokio::test]
async fn guest_cannot_ask_for_a_response_that_hides_a_secret() {
    let trusted = Authority::new();
    let server = trusted.server(NAME).await;
    let host = granting(server.port).roots(&trusted.pem).start().await;
    let mut asking = request("https", server.port);
    asking["headers"] = json!([
        ["accept-encoding", "gzip"],
        ["range", "bytes=0-9"],
        ["if-range", "x"],
        ["accept-charset", "utf-16"],
        ["x-other", "kept"]
    ]);
    host.value("fetch", asking).await;
    let seen = server.requests().concat();
    assert!(
        seen.contains("accept-encoding: identity\r\n") && seen.contains("x-other: kept"),
        "{seen}"
    );
    assert!(
        !seen.contains("gzip") && !seen.contains("range") && !seen.contains("utf-16"),
        "{seen}"
    );

    for encoded in ["Content-Encoding: gzip", "Content-Encoding: identity, br"] {
        let answer = format!("HTTP/1.1 200 OK\r\n{encoded}\r\nContent-Length: 4\r\n\r\nabcd");
        let server = trusted.answering(NAME, Answer::Fixed(answer.clone().into())).await;
        let host = granting(server.port).roots(&trusted.pem).start().await;
        let failed = host.failure("fetch", request("https", server.port)).await;
        assert!(failed.to_lowercase().contains("coding"), "{failed}");
        // If no secret is sent to a server, its response may be encoded, and the guest may request a range.
        let server = Server::start(Answer::Fixed(answer.into())).await;
        let lines = format!(
            "http = [{{ host = \"127.0.0.1\", scheme = \"http\", port = {} }}]",
            server.port
        );
        let host = Setup::new().grant(&lines).start().await;
        let mut plain = request("http", server.port);
        plain["authority"] = json!(format!("127.0.0.1:{}", server.port));
        plain["headers"] = json!([["range", "bytes=0-9"]]);
        assert_eq!(host.value("fetch", plain).await["body"], "abcd");
        assert!(server.requests()[0].contains("range: bytes=0-9"));
    }
}

// attack: K3, attack: K4
#[tokio::test]
async fn echoed_secrets_are_masked_within_the_deadline() {
    let trusted = Authority::new();
    let near = &VALUE[..VALUE.len() - 1];
    let body = format!("{}{VALUE}{}", near.repeat(16_000), "h".repeat(256 << 10));
    assert!(body.len() > 480 << 10);
    let head = format!(
        "HTTP/1.1 200 OK\r\nX-{VALUE}: a\r\nX-Echo: {VALUE}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let server = trusted.answering(NAME, Answer::Fixed((head + &body).into())).await;
    let mut host = granting(server.port).roots(&trusted.pem).start().await;
    host.context = host
        .context
        .clone()
        .with_extension(LimitOverrides::default().with_wall_max(Duration::from_secs(15)));
    let reply = host.value("fetch", request("https", server.port)).await;
    let received = reply["body"].as_str().unwrap();
    assert_eq!(received.len(), body.len());
    assert!(received.contains(near) && !received.contains(VALUE));
    assert!(received.contains(&"*".repeat(VALUE.len())));
    assert!(!reply["headers"].to_string().contains(VALUE), "{}", reply["headers"]);
}

// The servers of these tests close without a TLS close notification, as many do.
#[tokio::test]
async fn truncated_response_is_an_error() {
    let trusted = Authority::new();
    let complete = trusted.answering(NAME, Answer::text("complete")).await;
    let host = granting(complete.port).roots(&trusted.pem).start().await;
    assert_eq!(
        host.value("fetch", request("https", complete.port)).await["body"],
        "complete"
    );
    for cut in [
        "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\ncut",
        "HTTP/1.1 200 OK\r\n\r\ncut",
        "HTTP/1.1 200 OK\r\nX-",
    ] {
        let server = trusted.answering(NAME, Answer::Fixed(cut.into())).await;
        let host = granting(server.port).roots(&trusted.pem).start().await;
        host.failure("fetch", request("https", server.port)).await;
    }
}

// attack: C14
#[tokio::test]
async fn secret_for_https_is_not_sent_over_http() {
    let server = Server::start(Answer::Echo).await;
    let host = granting(server.port).roots(&Authority::new().pem).start().await;
    host.value("fetch", request("http", server.port)).await;
    let seen = server.requests().concat();
    assert!(seen.contains("Bearer of-the-guest") && !seen.contains(VALUE), "{seen}");
}

#[tokio::test]
async fn unusable_root_certificates_are_refused_at_start() {
    let good = Authority::new().pem;
    let cut = good.replace("-----END", "-----");
    let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for bad in ["", "no PEM", &cut, empty, &format!("{good}{empty}")] {
        let error = Setup::new().roots(bad).try_start().await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Configuration, "{error}");
        assert!(
            error.message.contains("root certificates") && error.suggestion.is_some(),
            "{error:?}"
        );
    }
    assert!(Setup::new().roots(&good).try_start().await.is_ok());
}

/// The variable that passes the server's port to the child process below.
const PORT: &str = "TOOLWIT_TEST_PORT";

// On other systems the system's own store decides.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn ssl_cert_file_replaces_the_system_roots() {
    let directory = tempfile::tempdir().unwrap();
    let (trusted, untrusted) = (Authority::new(), Authority::new());
    let server = trusted.server(NAME).await;
    for (authority, requests) in [(&untrusted, 0), (&trusted, 1)] {
        let file = directory.path().join("roots.pem");
        std::fs::write(&file, &authority.pem).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .args(["--exact", "--ignored", "tls::requests_once_with_the_system_roots"])
            .env("SSL_CERT_FILE", &file)
            .env_remove("SSL_CERT_DIR")
            .env(PORT, server.port.to_string());
        let output = tokio::task::spawn_blocking(move || child.output())
            .await
            .unwrap()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(server.requests().len(), requests);
    }
    assert!(server.requests()[0].contains(VALUE));
}

#[tokio::test]
#[ignore = "run by the test above, in a process with another environment"]
async fn requests_once_with_the_system_roots() {
    #[expect(clippy::disallowed_methods, reason = "the variable is set by the test above")]
    let port = std::env::var(PORT).unwrap().parse().unwrap();
    let host = granting(port).start().await;
    host.call("fetch", request("https", port)).await.unwrap();
}
