//! What is granted, as flags.

use std::path::PathBuf;

use toml_edit::{Array, InlineTable, Table, Value};

use toolwit::grants::Capability;
use toolwit::{Error, ErrorKind, Phase};

/// What is granted.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "What is granted")]
pub(super) struct AllowanceFlags {
    /// Requests: a host, or a URL whose path is a prefix, with methods before it; GET and HEAD over HTTPS otherwise
    #[arg(long, value_name = "[METHODS] URL")]
    http: Vec<String>,
    /// Addresses besides public ones to which the hosts may lead
    #[arg(long, value_name = "ADDRESS", requires = "http")]
    address: Vec<String>,
    /// A directory to read, and where the plugin sees it
    #[arg(long, value_name = "DIR::GUEST")]
    read: Vec<String>,
    /// A directory to read and write, and where the plugin sees it
    #[arg(long, value_name = "DIR::GUEST")]
    write: Vec<String>,
    /// How much a written directory may hold
    #[arg(long, value_name = "SIZE", requires = "write")]
    quota: Option<String>,
    /// An environment variable of the host, or one with a value
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// A setting, as `wasi:config` gives it
    #[arg(long, value_name = "KEY=VALUE")]
    config: Vec<String>,
    /// A key–value store of its own, and how much it may hold
    #[arg(long, value_name = "SIZE")]
    keyvalue: Option<String>,
    /// Another tool that it may call, by its id
    #[arg(long, value_name = "ID")]
    tool: Vec<String>,
    /// A key of the call's context that it may read
    #[arg(long, value_name = "KEY")]
    context: Vec<String>,
    /// The objects that the tools of a conversation share
    #[arg(long, value_name = "read|read-write")]
    blackboard: Option<String>,
    /// A secret, by its name in the store; needs --to and --as
    #[arg(long, value_name = "NAME", requires_all = ["to", "place"])]
    secret: Option<String>,
    /// The host and path to which the secret goes
    #[arg(long, value_name = "HOST[:PORT][/PATH]", requires = "secret")]
    to: Option<String>,
    /// Where in a request: `bearer`, `basic`, `header:NAME` or `query:NAME`
    #[arg(long = "as", id = "place", value_name = "PLACE", requires = "secret")]
    place: Option<String>,
}

impl AllowanceFlags {
    /// Lists what is granted, by kind: a plugin that does not import one has nothing of it.
    pub(super) fn kinds(&self) -> Vec<(&'static str, &'static [Capability])> {
        let granted = [
            (!self.http.is_empty(), "http", &[Capability::Http][..]),
            (
                !(self.read.is_empty() && self.write.is_empty()),
                "files",
                &[Capability::Files],
            ),
            (!self.env.is_empty(), "env", &[Capability::Env]),
            (!self.config.is_empty(), "config", &[Capability::Config]),
            (self.keyvalue.is_some(), "keyvalue", &[Capability::Keyvalue]),
            (!self.tool.is_empty(), "tools", &[Capability::Tools]),
            (!self.context.is_empty(), "context", &[Capability::Context]),
            (self.blackboard.is_some(), "blackboard", &[Capability::Blackboard]),
            (self.secret.is_some(), "secret", &[Capability::Http, Capability::Env]),
        ];
        let granted = granted.into_iter().filter(|(is_granted, ..)| *is_granted);
        granted.map(|(_, kind, capabilities)| (kind, capabilities)).collect()
    }

    /// Tells each in a line, for people and for the log.
    pub(super) fn told(&self) -> Vec<String> {
        let mut told: Vec<String> = self.http.iter().map(|rule| format!("http {rule}")).collect();
        told.extend(self.address.iter().map(|address| format!("address {address}")));
        told.extend(self.read.iter().map(|rule| format!("read {rule}")));
        told.extend(self.write.iter().map(|rule| format!("write {rule}")));
        told.extend(
            self.env
                .iter()
                .map(|rule| format!("env {}", rule.split('=').next().unwrap_or_default())),
        );
        told.extend(
            self.config
                .iter()
                .map(|rule| format!("config {}", rule.split('=').next().unwrap_or_default())),
        );
        let named = [("tool", &self.tool), ("context", &self.context)];
        told.extend(
            named
                .into_iter()
                .flat_map(|(kind, names)| names.iter().map(move |name| format!("{kind} {name}"))),
        );
        let single = [("keyvalue", &self.keyvalue), ("blackboard", &self.blackboard)];
        told.extend(
            single
                .into_iter()
                .filter_map(|(kind, value)| Some(format!("{kind} {}", value.as_ref()?))),
        );
        if let (Some(secret), Some(to), Some(place)) = (&self.secret, &self.to, &self.place) {
            told.push(format!("secret {secret} to {to} as {place}"));
        }
        told
    }

    /// Writes them as the rules of a grant.
    pub(super) fn write(&self, grant: &mut Table) -> Result<(), Error> {
        let mut http = Array::new();
        for rule in &self.http {
            http.push(self.http_rule(rule)?);
        }
        let mut files = Array::new();
        for (rules, access) in [(&self.read, "read"), (&self.write, "read-write")] {
            for rule in rules {
                files.push(self.file_rule(rule, access)?);
            }
        }
        let mut env = Array::new();
        for rule in &self.env {
            let mut table = InlineTable::new();
            let (name, value) = match rule.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (rule.as_str(), None),
            };
            table.insert("name", name.into());
            if let Some(value) = value {
                table.insert("value", value.into());
            }
            env.push(table);
        }
        let mut config = InlineTable::new();
        for rule in &self.config {
            let (key, value) = rule.split_once('=').ok_or_else(|| unclear(rule, "KEY=VALUE"))?;
            config.insert(key, value.into());
        }
        for (key, rules) in [("http", http), ("files", files), ("env", env)] {
            if !rules.is_empty() {
                grant[key] = toml_edit::value(rules);
            }
        }
        for (key, names) in [("tools", &self.tool), ("context", &self.context)] {
            if !names.is_empty() {
                grant[key] = toml_edit::value(Array::from_iter(names));
            }
        }
        if let Some(quota) = &self.keyvalue {
            let mut table = InlineTable::new();
            table.insert("quota", quota.into());
            grant["keyvalue"] = toml_edit::value(table);
        }
        if let Some(access) = &self.blackboard {
            grant["blackboard"] = toml_edit::value(access);
        }
        if !config.is_empty() {
            grant["config"] = toml_edit::value(config);
        }
        if let (Some(secret), Some(to), Some(place)) = (&self.secret, &self.to, &self.place) {
            let mut secrets = Array::new();
            secrets.push(secret_rule(secret, to, place)?);
            grant["secrets"] = toml_edit::value(secrets);
        }
        Ok(())
    }

    fn http_rule(&self, rule: &str) -> Result<InlineTable, Error> {
        let (methods, url) = match rule.trim().rsplit_once(' ') {
            Some((methods, url)) => (Some(methods.trim()), url),
            None => (None, rule.trim()),
        };
        let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
        let mut table = InlineTable::new();
        insert_place(&mut table, rest)?;
        if table.get("host").and_then(Value::as_str) == Some("*") {
            table.insert("any-host", true.into());
        }
        if scheme != "https" {
            table.insert("scheme", scheme.into());
        }
        if let Some(methods) = methods {
            table.insert("methods", Value::from_iter(methods.split(',').map(str::trim)));
        }
        if !self.address.is_empty() {
            table.insert("addresses", Value::from_iter(&self.address));
        }
        Ok(table)
    }

    fn file_rule(&self, rule: &str, access: &str) -> Result<InlineTable, Error> {
        let (host, guest) = rule.split_once("::").ok_or_else(|| unclear(rule, "DIR::GUEST"))?;
        // The shell's directory is where the operator is now; the grant must not depend on it.
        let host: PathBuf = std::path::absolute(host).map_err(|_| unclear(rule, "DIR::GUEST"))?;
        if !host.is_dir() {
            // A rule that cannot be enforced would make the whole file wrong.
            let message = format!("{} is no directory", host.display());
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message));
        }
        let host = host.to_str().ok_or_else(|| unclear(rule, "DIR::GUEST"))?.to_owned();
        let mut table = InlineTable::new();
        table.insert("host", host.into());
        table.insert("guest", guest.into());
        table.insert("access", access.into());
        if let Some(quota) = self.quota.as_ref().filter(|_| access == "read-write") {
            table.insert("quota", quota.into());
        }
        Ok(table)
    }
}

fn secret_rule(secret: &str, to: &str, place: &str) -> Result<InlineTable, Error> {
    let mut table = InlineTable::new();
    table.insert("name", secret.into());
    insert_place(&mut table, to.strip_prefix("https://").unwrap_or(to))?;
    match place.split_once(':') {
        Some(("header", name)) => table.insert("header", name.into()),
        Some(("query", name)) => table.insert("query", name.into()),
        None if place == "bearer" || place == "basic" => table.insert(place, true.into()),
        _ => return Err(unclear(place, "bearer, basic, header:NAME or query:NAME")),
    };
    Ok(table)
}

/// Writes `host[:port][/path]` as the keys of a rule.
fn insert_place(table: &mut InlineTable, text: &str) -> Result<(), Error> {
    let at = text.find('/').unwrap_or(text.len());
    let (authority, path) = text.split_at(at);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    table.insert("host", host.into());
    if let Some(port) = port {
        let port: u16 = port.parse().map_err(|_| unclear(text, "HOST[:PORT][/PATH]"))?;
        table.insert("port", i64::from(port).into());
    }
    if path.len() > 1 {
        table.insert("path", path.split(['?', '#']).next().unwrap_or_default().into());
    }
    Ok(())
}

fn unclear(text: &str, form: &str) -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        format!("`{}` is not of the form `{form}`", text.escape_debug()),
    )
}
