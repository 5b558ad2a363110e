//! A client that the conformance suite of the protocol drives; see `.ci/mcp-client-conformance`.
//!
//! The suite starts the program with the URL of a server as its last argument, and names the scenario in `MCP_CONFORMANCE_SCENARIO`.

#![allow(clippy::print_stderr)]

use std::collections::HashMap;
use std::error::Error as _;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use toolwit_agent::ToolSource;
use toolwit_core::{Arguments, Tool, ToolContext, ToolError, ToolResult};
use toolwit_mcp_client::{
    ClientOptions, LoginRequest, LoginRequired, LoginStore, McpServer, OauthClient, OauthLogin, RevisionChoice,
    ServerAnswer, ServerConfig, ServerQuestion, ServerRequests, SettingValue,
};
use zeroize::Zeroizing;

/// The address of the client's metadata in the suite.
const CLIENT_METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

/// The tool whose schema the suite compares with the one that [`ECHO_TOOL`] receives.
const SHOWN_TOOL: &str = "json_schema_2020_12_tool";

const ECHO_TOOL: &str = "json_schema_echo";

/// Stores logins in memory.
#[derive(Default)]
struct Logins(Mutex<HashMap<String, String>>);

impl Logins {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoginStore for Logins {
    fn login(&self, key: &str) -> Result<Option<Zeroizing<String>>, toolwit_core::Error> {
        Ok(self.lock().get(key).cloned().map(Zeroizing::new))
    }

    fn store(&self, key: &str, login: &str) -> Result<(), toolwit_core::Error> {
        self.lock().insert(key.to_owned(), login.to_owned());
        Ok(())
    }

    fn remove(&self, key: &str) -> Result<bool, toolwit_core::Error> {
        Ok(self.lock().remove(key).is_some())
    }
}

/// Answers questions with the defaults of their schemas.
struct AnswerWithDefaults;

#[async_trait]
impl ServerRequests for AnswerWithDefaults {
    fn answers_questions(&self) -> bool {
        true
    }

    async fn answer(&self, question: ServerQuestion) -> ServerAnswer {
        let fields = question.schema["properties"].as_object().into_iter().flatten();
        let defaults = fields.filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone())));
        ServerAnswer::Accepted(defaults.collect())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let scenario = variable("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let Some(url) = std::env::args().next_back() else {
        return ExitCode::FAILURE;
    };
    match run(&scenario, &url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the scenario `{scenario}` failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The number of logins that the user does for one server.
const LOGINS_MAX: usize = 3;

/// Uses the tools of a server, and logs in if the server requires a login.
async fn run(scenario: &str, url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let revision = match variable("MCP_CONFORMANCE_PROTOCOL_VERSION").as_deref() {
        Some("2026-07-28") => RevisionChoice::Newest,
        _ => RevisionChoice::Handshake,
    };
    let mut config = ServerConfig::http("suite", url)?.with_revision(revision);
    if scenario.starts_with("auth/client-credentials") {
        config = config.with_oauth(oauth_client(url).await?);
    } else if scenario.starts_with("auth/") {
        config = config.with_login(login_settings()?);
    }
    let logins = Logins::default();
    let options = ClientOptions::default()
        .with_requests(AnswerWithDefaults)
        .with_logins(logins);
    let mut logins_left = LOGINS_MAX;
    loop {
        let Err(error) = use_tools(&config, &options).await else {
            return Ok(());
        };
        match login_of(&error) {
            Some(required) if logins_left > 0 => {
                logins_left -= 1;
                let login = LoginRequest::new(&config, &options)
                    .scopes(required.scopes)
                    .begin()
                    .await?;
                let browser = tokio::spawn(browse(login.url().to_string()));
                login.finish().await?;
                browser.await??;
            }
            _ => return Err(error.into()),
        }
    }
}

/// Lists the tools of a server and calls those that the scenario names, or all.
async fn use_tools(config: &ServerConfig, options: &ClientOptions) -> Result<(), toolwit_core::Error> {
    let server = McpServer::new(config.clone(), options.clone());
    let context = ToolContext::new();
    let tools = server.tools(&context).await?;
    let named = named_calls();
    if named.is_empty() {
        let shown = tools.iter().find(|tool| tool.definition().name() == SHOWN_TOOL);
        let shown = shown.map(|tool| tool.definition().input_schema.clone());
        for tool in tools {
            let mut arguments = arguments(&tool.definition().input_schema);
            if let Some(schema) = shown.as_ref().filter(|_| tool.definition().name() == ECHO_TOOL) {
                arguments.insert("schema".to_owned(), Value::clone(schema));
            }
            required_login(tool.call(arguments, &context).await)?;
        }
    }
    for (name, arguments) in named {
        if let Some(tool) = tools_named(&server, &context, &name).await? {
            required_login(tool.call(arguments, &context).await)?;
        }
    }
    server.disconnect();
    // Wait until the request that ends the session was sent.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    Ok(())
}

/// Returns an error only if the call requires a login. Tools of the suite may fail for other reasons on purpose.
fn required_login(outcome: Result<ToolResult, ToolError>) -> Result<(), toolwit_core::Error> {
    match outcome {
        Err(ToolError::Model(error)) if login_of(&error).is_some() => Err(error),
        _ => Ok(()),
    }
}

fn login_of(error: &toolwit_core::Error) -> Option<LoginRequired> {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(required) = cause.downcast_ref::<LoginRequired>() {
            return Some(required.clone());
        }
        source = cause.source();
    }
    None
}

/// Returns the client of the login: the registered one of the scenario, or one with a metadata document.
fn login_settings() -> Result<OauthLogin, toolwit_core::Error> {
    let context = suite_context();
    let login = OauthLogin::default().with_client_metadata_url(CLIENT_METADATA_URL)?;
    Ok(
        match (context["client_id"].as_str(), context["client_secret"].as_str()) {
            (Some(id), Some(secret)) => login.with_client_id(id).with_client_secret(SettingValue::text(secret)),
            _ => login,
        },
    )
}

/// Opens the login page of the suite, which asks for no input, and follows its redirect to this machine.
async fn browse(url: String) -> std::io::Result<()> {
    let response = get(&url).await?;
    let location = response.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    match location {
        Some(location) => get(&location).await.map(drop),
        None => Err(std::io::Error::other("the login does not redirect")),
    }
}

/// Requests an address of this machine. Returns the response with its headers.
async fn get(url: &str) -> std::io::Result<String> {
    let rest = url.trim_start_matches("http://");
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(authority).await?;
    let request = format!("GET /{path} HTTP/1.0\r\nHost: {authority}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}

async fn tools_named(
    server: &McpServer,
    context: &ToolContext,
    name: &str,
) -> Result<Option<std::sync::Arc<dyn Tool>>, toolwit_core::Error> {
    let tools = server.tools(context).await?;
    Ok(tools.into_iter().find(|tool| tool.definition().name() == name))
}

/// Returns the client that the suite has registered at its issuer. An operator would configure the issuer; here it is
/// the one that the server names.
async fn oauth_client(url: &str) -> Result<OauthClient, Box<dyn std::error::Error>> {
    let authority = url.split('/').nth(2).unwrap_or_default();
    let response = get(&format!("http://{authority}/.well-known/oauth-protected-resource/mcp")).await?;
    let body = response
        .split_once("\r\n\r\n")
        .map(|(_, body)| body)
        .unwrap_or_default();
    let metadata: Value = serde_json::from_str(body)?;
    let issuer = metadata["authorization_servers"][0]
        .as_str()
        .ok_or("the server names no issuer")?;
    let context = suite_context();
    let text = |name: &str, default: &str| context[name].as_str().unwrap_or(default).to_owned();
    let client = OauthClient::new(issuer, &text("client_id", "conformance"))?;
    Ok(client.with_client_secret(SettingValue::text(text("client_secret", "conformance-secret"))))
}

/// Returns the parameters of the scenario.
fn suite_context() -> Value {
    let text = variable("MCP_CONFORMANCE_CONTEXT");
    text.and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

/// Returns the calls that the suite requires.
fn named_calls() -> Vec<(String, Arguments)> {
    let context = suite_context();
    let calls = context["toolCalls"].as_array().cloned().unwrap_or_default();
    let call = |call: Value| {
        let mut arguments = call["arguments"].as_object().cloned().unwrap_or_default();
        // A null value means that the argument is not passed: the schemas of the suite do not accept null.
        arguments.retain(|_, value| !value.is_null());
        Some((call["name"].as_str()?.to_owned(), arguments))
    };
    calls.into_iter().filter_map(call).collect()
}

/// Returns arguments that a schema accepts.
fn arguments(schema: &Value) -> Map<String, Value> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let value = |schema: &Value| match schema["type"].as_str() {
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("test"),
    };
    properties.map(|(name, schema)| (name.clone(), value(schema))).collect()
}

#[expect(clippy::disallowed_methods, reason = "the suite passes its parameters like this")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
