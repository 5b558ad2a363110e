//! An authorization server for tests, which signs access tokens.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The identifier of the server for which the tokens are.
pub(crate) const RESOURCE: &str = "https://tools.example.com/mcp";

/// The private key of the test.
const RSA_KEY: &[u8] = include_bytes!("rsa_key.der");

/// A key of an issuer.
pub(crate) enum Key {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Key {
    pub(crate) fn rsa() -> Self {
        Self::Rsa(RsaKeyPair::from_pkcs8(RSA_KEY).unwrap())
    }

    pub(crate) fn p256() -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Self::P256(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap())
    }

    pub(crate) fn ed25519() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
    }

    pub(crate) fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::P256(_) => "ES256",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    /// Returns the public key.
    pub(crate) fn public(&self, id: &str) -> Value {
        match self {
            Self::Rsa(key) => {
                let key: ring::rsa::PublicKeyComponents<Vec<u8>> = key.public().into();
                json!({"kty": "RSA", "kid": id, "use": "sig", "n": encoded(&key.n), "e": encoded(&key.e)})
            }
            Self::P256(key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "kid": id, "x": encoded(x), "y": encoded(y)})
            }
            Self::Ed25519(key) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": encoded(key.public_key().as_ref())})
            }
        }
    }

    /// Signs a token with a header and claims.
    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let (bytes, random) = (message.as_bytes(), SystemRandom::new());
        let signature = match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, bytes, &mut signature).unwrap();
                signature
            }
            Self::P256(key) => key.sign(&random, bytes).unwrap().as_ref().to_vec(),
            Self::Ed25519(key) => key.sign(bytes).as_ref().to_vec(),
        };
        format!("{message}.{}", encoded(&signature))
    }

    /// Signs an access token.
    pub(crate) fn token(&self, id: &str, claims: &Value) -> String {
        self.sign(&json!({"alg": self.algorithm(), "typ": "at+jwt", "kid": id}), claims)
    }
}

/// Returns what a signature is for.
pub(crate) fn message(header: &Value, claims: &Value) -> String {
    format!(
        "{}.{}",
        encoded(header.to_string().as_bytes()),
        encoded(claims.to_string().as_bytes())
    )
}

pub(crate) fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A running issuer. It ends with the test.
pub(crate) struct Issuer {
    pub(crate) url: String,
    keys: Arc<Mutex<Vec<Value>>>,
    /// The number of requests for keys.
    pub(crate) requests: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Issuer {
    pub(crate) async fn start(keys: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (keys, requests) = (Arc::new(Mutex::new(keys)), Arc::new(AtomicUsize::new(0)));
        let (own_keys, counter, origin) = (keys.clone(), requests.clone(), url.clone());
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = vec![0; 4096];
                let read = stream.read(&mut bytes).await.unwrap();
                let head = String::from_utf8_lossy(&bytes[..read]).into_owned();
                let body = if head.starts_with("GET /.well-known/oauth-authorization-server ") {
                    json!({"issuer": origin, "jwks_uri": format!("{origin}/keys")})
                } else {
                    counter.fetch_add(1, Ordering::Relaxed);
                    // A key of an unknown kind does not hide the others.
                    let unknown = json!({"kty": "AKP", "kid": "future"});
                    let keys = own_keys
                        .lock()
                        .unwrap()
                        .iter()
                        .cloned()
                        .chain([unknown])
                        .collect::<Vec<_>>();
                    json!({ "keys": keys })
                };
                let body = body.to_string();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
                let response = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                stream.write_all(response.as_bytes()).await.unwrap();
            }
        });
        Self {
            url,
            keys,
            requests,
            task,
        }
    }

    pub(crate) fn replace_keys(&self, keys: Vec<Value>) {
        *self.keys.lock().unwrap() = keys;
    }

    /// Returns the claims of a valid token.
    pub(crate) fn claims(&self, subject: &str) -> Value {
        json!({"iss": self.url, "sub": subject, "aud": RESOURCE, "exp": now() + 300, "scope": "tools other"})
    }
}
