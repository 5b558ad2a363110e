//! The variables, the arguments and the directory of a process, and the secrets among them.

use serde_json::json;
use toolwit_agent::ToolSource;
use toolwit_core::{Error, ErrorKind, ToolContext};
use toolwit_mcp_client::{ClientOptions, McpServer, SettingValue, ValueSource};
use zeroize::Zeroizing;

use crate::{call, config, works};

/// Has the secret `key` and the variable `PATH`.
struct Values;

impl ValueSource for Values {
    fn secret(&self, name: &str) -> Result<Option<Zeroizing<String>>, Error> {
        Ok((name == "key").then(|| Zeroizing::new("correct horse battery".to_owned())))
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "PATH").then(|| "/usr/bin".to_owned())
    }
}

fn options() -> ClientOptions {
    ClientOptions::default().with_values(Values)
}

#[tokio::test]
async fn a_process_has_only_the_variables_that_are_named() {
    let config = config("plain")
        .with_variable("API_KEY", SettingValue::secret("key"))
        .with_variable("MODE", "test");
    let server = McpServer::new(config, options());
    let variables = call(&server, "environment", json!({})).await.unwrap().value.unwrap();
    let names: Vec<_> = variables.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["API_KEY", "MODE", "PATH"]);
    assert_eq!(variables["API_KEY"], "[redacted]", "it does not come back");
    let without = crate::config("plain").with_variable("API_KEY", SettingValue::secret("other"));
    let error = McpServer::new(without, options())
        .tools(&ToolContext::new())
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind, ErrorKind::MissingKey);
}

// attack: G9
#[tokio::test]
async fn a_secret_that_a_server_returns_is_redacted() {
    let config = config("echoes-secret").with_variable("API_KEY", SettingValue::secret("key"));
    let server = McpServer::new(config, options());
    let result = call(&server, "echo", json!({"text": ""})).await.unwrap();
    assert_eq!(
        (result.for_llm.as_str(), result.value),
        (
            "[redacted]\n\n{\"key\":\"[redacted]\"}",
            Some(json!({"key": "[redacted]"}))
        )
    );
}

// attack: G9
#[tokio::test]
async fn configuration_is_returned_and_secrets_are_redacted() {
    struct Environment;

    impl ValueSource for Environment {
        fn secret(&self, _: &str) -> Result<Option<Zeroizing<String>>, Error> {
            Ok(Some(Zeroizing::new("correct horse battery".to_owned())))
        }

        fn variable(&self, name: &str) -> Option<String> {
            let value = match name {
                "HOME" => "/srv/ada-lovelace",
                "API_TOKEN" => "token-1234567890",
                "DATABASE" => "postgresql://ada:opensesame@localhost/db",
                _ => return None,
            };
            Some(value.to_owned())
        }
    }

    let template = SettingValue::from_template;
    let config = config("plain")
        .with_arguments([
            template("plain"),
            template("${HOME}/project"),
            template("${MODE:-debugging}"),
            template("${API_TOKEN}"),
            template("${DATABASE}"),
        ])
        .with_variable("PROJECT", SettingValue::variable("HOME"))
        .with_variable("GITHUB_TOKEN", template("literal-token-value"))
        .with_variable("OTHER", SettingValue::secret("key"));
    let server = McpServer::new(config, ClientOptions::default().with_values(Environment));
    let echoed = async |text: &str| call(&server, "echo", json!({"text": text})).await.unwrap().for_llm;
    for text in ["/srv/ada-lovelace/project", "debugging", "postgresql://ada"] {
        assert_eq!(echoed(text).await, text);
    }
    for text in [
        "token-1234567890",
        "opensesame",
        "literal-token-value",
        "correct horse battery",
    ] {
        assert_eq!(echoed(text).await, "[redacted]");
    }
}

// attack: G9
#[tokio::test]
async fn a_secret_in_the_arguments_of_a_process_is_refused_unless_it_may_be_visible() {
    let config = || config("plain").with_arguments([SettingValue::text("plain"), SettingValue::secret("key")]);
    let error = McpServer::new(config(), options())
        .tools(&ToolContext::new())
        .await
        .err()
        .unwrap();
    assert!(error.message.contains("visible to every user"), "{error}");
    works(&McpServer::new(config().with_visible_secrets(), options())).await;
    let context = crate::config("plain").with_arguments([SettingValue::context("token")]);
    let error = McpServer::new(context, options())
        .tools(&ToolContext::new().with("token", "t-12345678"))
        .await;
    assert!(error.err().unwrap().message.contains("visible to every user"));
}

#[tokio::test]
async fn a_wrong_directory_is_named() {
    let config = config("plain").with_directory("absent-directory");
    let error = McpServer::new(config, ClientOptions::default())
        .tools(&ToolContext::new())
        .await;
    let error = error.err().unwrap();
    assert!(
        error
            .message
            .contains("its directory `absent-directory` does not exist"),
        "{error}"
    );
}
