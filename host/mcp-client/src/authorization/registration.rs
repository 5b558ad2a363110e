//! The OAuth client of a login: a configured client, a client with a metadata document, or a client that the issuer
//! registers.

use serde::Deserialize;
use serde_json::json;
use zeroize::Zeroizing;

use crate::config::OauthLogin;
use crate::transport::{AuthorizationServer, ClientAuthentication, ClientIdentity, post_json};
use crate::value::Redaction;

/// The name of the client, which the issuer may show to the user.
const CLIENT_NAME: &str = "Toolwit";

/// The maximum length of a registered client id, and of a registered client secret, in bytes.
const CREDENTIAL_BYTES_MAX: usize = 4 << 10;

/// The OAuth client of a login.
pub(super) struct LoginClient {
    pub(super) identity: ClientIdentity,
    /// The method by which a registered client authenticates itself. `None` for other clients: the method is then the first
    /// supported one in the metadata of the issuer.
    pub(super) authentication: Option<ClientAuthentication>,
    /// Whether the issuer registered the client for this login. The secret of the client is then stored with the login.
    pub(super) is_registered: bool,
}

/// The response to a registration (RFC 7591).
#[derive(Deserialize)]
struct RegistrationResponse {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// The response of an issuer that refuses a registration.
#[derive(Default, Deserialize)]
struct RegistrationRefusal {
    error: Option<String>,
}

impl LoginClient {
    /// Returns the configured client, or else the client of the metadata document if the issuer supports such
    /// documents, or else a new client, which the issuer registers.
    ///
    /// # Errors
    /// If a client must be registered, and the issuer does not register clients, refuses this client, or sends an unusable
    /// response.
    pub(super) async fn find_or_register(
        login: &OauthLogin,
        configured_secret: Option<Zeroizing<String>>,
        issuer: &AuthorizationServer,
        redirect_url: &str,
        redaction: &Redaction,
    ) -> Result<Self, String> {
        let without_registration = |id: String, secret| Self {
            identity: ClientIdentity { id, secret },
            authentication: None,
            is_registered: false,
        };
        if let Some(id) = &login.client_id {
            return Ok(without_registration(id.clone(), configured_secret));
        }
        if let Some(url) = login
            .client_metadata_url
            .as_ref()
            .filter(|_| issuer.supports_client_metadata_documents())
        {
            return Ok(without_registration(url.to_string(), None));
        }
        Self::register(issuer, redirect_url, redaction).await
    }

    /// Registers a client with one redirect URL.
    async fn register(issuer: &AuthorizationServer, redirect_url: &str, redaction: &Redaction) -> Result<Self, String> {
        let Some(endpoint) = issuer.registration_endpoint()? else {
            return Err("the issuer does not register clients: configure a `client_id`".to_owned());
        };
        let method = if issuer.supports_public_clients() {
            ClientAuthentication::None
        } else {
            issuer.token_endpoint()?.authentication
        };
        let metadata = json!({
            "client_name": CLIENT_NAME,
            "application_type": "native",
            "redirect_uris": [redirect_url],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method.name(),
        });
        let (is_success, body) = post_json(&endpoint, &metadata, redaction).await?;
        let body = Zeroizing::new(body);
        if !is_success {
            let refusal: RegistrationRefusal = serde_json::from_slice(&body).unwrap_or_default();
            let code = refusal.error.filter(|code| !code.trim().is_empty());
            let code_note = code.map_or_else(String::new, |code| format!(" (`{}`)", redaction.quoted(&code)));
            return Err(format!(
                "the issuer does not register the client{code_note}: configure a `client_id`"
            ));
        }
        let registered: RegistrationResponse =
            serde_json::from_slice(&body).map_err(|_| "the issuer's response is not a registration".to_owned())?;
        let secret = registered.client_secret.map(Zeroizing::new);
        if let Some(secret) = &secret {
            redaction.add(secret);
        }
        let is_usable = |text: &str| {
            !text.is_empty()
                && text.len() <= CREDENTIAL_BYTES_MAX
                && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        if !is_usable(&registered.client_id) || secret.as_ref().is_some_and(|secret| !is_usable(secret)) {
            return Err("the issuer registered a client with an invalid id or secret".to_owned());
        }
        let method_name = registered.token_endpoint_auth_method.as_deref();
        let method = method_name.and_then(ClientAuthentication::from_name).unwrap_or(method);
        Ok(Self {
            identity: ClientIdentity {
                id: registered.client_id,
                secret: secret.filter(|_| method != ClientAuthentication::None),
            },
            authentication: Some(method),
            is_registered: true,
        })
    }
}
