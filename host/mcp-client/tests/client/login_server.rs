//! An authorization server for tests, the server that accepts its tokens, a store of logins, and the browser of a user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolwit_core::Error;
use toolwit_mcp_client::{ClientOptions, LoginStore, ServerConfig};
use url::{Url, form_urlencoded};
use zeroize::Zeroizing;

use crate::http_server::{HttpServer, Reply, Request, handshake};

/// A reply of its own. With `None`, the server sends no reply.
pub(crate) type SpecialReply = fn() -> Option<Reply>;

/// The differences of an authorization server from a correct one.
#[derive(Clone, Default)]
pub(crate) struct Behaviour {
    /// Fields that replace those of its metadata; null removes one.
    pub(crate) metadata: Value,
    /// Parameters that replace those of its response; null removes one.
    pub(crate) response: Value,
    /// Fields that replace those of its tokens; null removes one.
    pub(crate) tokens: Value,
    /// The error of token requests with a refresh token.
    pub(crate) refusal: Option<&'static str>,
    /// The path whose requests get a reply of their own, or no reply.
    pub(crate) special: Option<(&'static str, SpecialReply)>,
}

/// An authorization server whose tokens are `access-token-1`, `access-token-2` and so on.
pub(crate) struct LoginServer {
    pub(crate) http: HttpServer,
}

#[derive(Default)]
struct State {
    challenge: String,
    tokens: usize,
}

impl LoginServer {
    pub(crate) async fn start(behaviour: Behaviour) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let http = HttpServer::start(move |request| {
            let path = request.path.split('?').next().unwrap_or_default();
            if let Some((_, reply)) = behaviour.special.filter(|(special, _)| *special == path) {
                return reply();
            }
            let mut state = state.lock().unwrap();
            Some(match path {
                "/.well-known/oauth-authorization-server" => metadata(request, &behaviour),
                "/register" => {
                    assert_eq!(request.message["token_endpoint_auth_method"], "none");
                    assert_eq!(request.message["application_type"], "native");
                    Reply::json(&json!({"client_id": "registered-client", "client_secret": "not-needed"}))
                }
                "/authorize" => authorize(request, &behaviour, &mut state),
                "/token" => token(request, &behaviour, &mut state),
                "/revoke" => Reply::status(200),
                _ => Reply::status(404),
            })
        })
        .await;
        Self { http }
    }

    pub(crate) fn origin(&self) -> String {
        self.http.url.trim_end_matches("/mcp").to_owned()
    }

    /// Returns the parameters of the requests to a path.
    pub(crate) fn forms(&self, path: &str) -> Vec<HashMap<String, String>> {
        let received = self.http.received().into_iter().filter(|request| request.path == path);
        received.map(|request| parameters(&request.body)).collect()
    }
}

fn origin_of(request: &Request) -> String {
    format!("http://{}", request.headers["host"])
}

fn parameters(text: &str) -> HashMap<String, String> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

fn changed(mut document: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().into_iter().flatten() {
        document[name] = value.clone();
    }
    let fields = document.as_object_mut().unwrap();
    fields.retain(|_, value| !value.is_null());
    document
}

fn metadata(request: &Request, behaviour: &Behaviour) -> Reply {
    let origin = origin_of(request);
    let endpoint = |path: &str| format!("{origin}{path}");
    let document = json!({
        "issuer": origin, "authorization_endpoint": endpoint("/authorize"), "token_endpoint": endpoint("/token"),
        "registration_endpoint": endpoint("/register"), "revocation_endpoint": endpoint("/revoke"),
        "code_challenge_methods_supported": ["S256"], "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true, "scopes_supported": ["read", "offline_access"],
    });
    Reply::json(&changed(document, &behaviour.metadata))
}

/// Logs the user in without a question.
fn authorize(request: &Request, behaviour: &Behaviour, state: &mut State) -> Reply {
    let query = parameters(request.path.split_once('?').unwrap().1);
    assert_eq!(query["response_type"], "code");
    assert_eq!(query["code_challenge_method"], "S256");
    state.challenge.clone_from(&query["code_challenge"]);
    let response = json!({"code": "the-code", "state": query["state"], "iss": origin_of(request)});
    let response = changed(response, &behaviour.response);
    let mut location = Url::parse(&query["redirect_uri"]).unwrap();
    let pairs = response.as_object().unwrap().iter();
    location
        .query_pairs_mut()
        .extend_pairs(pairs.map(|(name, value)| (name, value.as_str().unwrap())));
    Reply::status(302).with_header("location", location.as_str())
}

fn token(request: &Request, behaviour: &Behaviour, state: &mut State) -> Reply {
    let form = parameters(&request.body);
    if form["grant_type"] == "authorization_code" {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(form["code_verifier"].as_bytes()));
        if form["code"] != "the-code" || challenge != state.challenge {
            return Reply::status(400);
        }
    } else if let Some(error) = behaviour.refusal {
        return Reply::json_status(400, &json!({"error": error}));
    }
    state.tokens += 1;
    let number = state.tokens;
    let tokens = json!({
        "access_token": format!("access-token-{number}"), "refresh_token": format!("refresh-token-{number}"),
        "token_type": "Bearer", "expires_in": 3600,
    });
    Reply::json(&changed(tokens, &behaviour.tokens))
}

/// Starts a server that accepts some tokens of an issuer, and challenges other requests with the scope `read`.
pub(crate) async fn protected(issuer: String, accepts: fn(&str) -> bool) -> HttpServer {
    HttpServer::start(move |request| {
        let origin = origin_of(request);
        if request.path == "/.well-known/oauth-protected-resource/mcp" {
            let resource = format!("{origin}/mcp");
            return Some(Reply::json(&json!({
                "resource": resource, "authorization_servers": [issuer], "scopes_supported": ["unused"],
            })));
        }
        let token = request.headers.get("authorization").map_or("", String::as_str);
        if accepts(token.trim_start_matches("Bearer ")) {
            return handshake(request);
        }
        let metadata = format!("{origin}/.well-known/oauth-protected-resource/mcp");
        let challenge = format!("Bearer scope=\"read\", resource_metadata=\"{metadata}\"");
        Some(Reply::status(401).with_header("www-authenticate", challenge))
    })
    .await
}

/// Stores logins in memory.
#[derive(Clone, Default)]
pub(crate) struct Logins(pub(crate) Arc<Mutex<HashMap<String, String>>>);

impl Logins {
    pub(crate) fn options(&self) -> ClientOptions {
        ClientOptions::default().with_logins(self.clone())
    }

    /// Returns the only login.
    pub(crate) fn only(&self) -> Value {
        let logins = self.0.lock().unwrap();
        assert_eq!(logins.len(), 1);
        serde_json::from_str(logins.values().next().unwrap()).unwrap()
    }
}

impl LoginStore for Logins {
    fn login(&self, key: &str) -> Result<Option<Zeroizing<String>>, Error> {
        Ok(self.0.lock().unwrap().get(key).cloned().map(Zeroizing::new))
    }

    fn store(&self, key: &str, login: &str) -> Result<(), Error> {
        self.0.lock().unwrap().insert(key.to_owned(), login.to_owned());
        Ok(())
    }

    fn remove(&self, key: &str) -> Result<bool, Error> {
        Ok(self.0.lock().unwrap().remove(key).is_some())
    }
}

pub(crate) fn config(http: &HttpServer) -> ServerConfig {
    ServerConfig::http("test", &http.url).unwrap()
}

/// Requests an address, and returns the status, the address of a redirect, and the body.
pub(crate) async fn get(url: &Url, host: &str) -> (u16, Option<Url>, String) {
    let address = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let target = &url[url::Position::BeforePath..];
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = vec![0; 64 << 10];
    let mut read = 0;
    // The authorization server keeps its connections open.
    while !bytes[..read].windows(4).any(|end| end == b"\r\n\r\n") {
        let more = stream.read(&mut bytes[read..]).await.unwrap();
        assert_ne!(more, 0);
        read += more;
    }
    let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let location = text.lines().find_map(|line| line.strip_prefix("location: "));
    let location = location.map(|location| Url::parse(location).unwrap());
    (status, location, text)
}

/// Returns the address to which the authorization server sends the browser.
pub(crate) async fn redirect_of(url: &Url) -> Url {
    let (status, location, _) = get(url, &authority(url)).await;
    assert_eq!(status, 302);
    location.unwrap()
}

/// Opens an address in the browser, and follows the redirect to this machine. Returns the status of the page.
pub(crate) async fn browse(url: Url) -> u16 {
    let location = redirect_of(&url).await;
    get(&location, &authority(&location)).await.0
}

pub(crate) fn authority(url: &Url) -> String {
    format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())
}
