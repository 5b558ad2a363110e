//! The rules of a grant, as options of the command line.

use std::collections::BTreeMap;
use std::path::Path;

use toolwit::grants::{
    AccessMode, AddressRange, Capability, DirectoryRule, EnvRule, GrantRules, HttpRule, KeyValueRule, RuleError,
    SecretPlacement, SecretRule,
};
use toolwit::limits::ByteCount;

/// The rules of a grant.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Rules")]
pub(super) struct RuleFlags {
    /// HTTP requests to a host or a URL prefix; GET and HEAD over HTTPS by default
    #[arg(long, value_name = "[METHODS] URL")]
    http: Vec<String>,
    /// Non-public address or address range to which the hosts of --http may resolve
    #[arg(long, value_name = "ADDRESS", requires = "http")]
    address: Vec<String>,
    /// Directory to read, and its path in the plugin
    #[arg(long, value_name = "DIR::GUEST")]
    read: Vec<String>,
    /// Directory to read and write, and its path in the plugin
    #[arg(long, value_name = "DIR::GUEST")]
    write: Vec<String>,
    /// Size limit of each writable directory
    #[arg(long, value_name = "SIZE", requires = "write")]
    quota: Option<String>,
    /// Environment variable, with the value of the host or with VALUE
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Setting, which the plugin reads through `wasi:config`
    #[arg(long, value_name = "KEY=VALUE")]
    config: Vec<String>,
    /// Size limit of a private key–value store for the plugin
    #[arg(long, value_name = "SIZE")]
    keyvalue: Option<String>,
    /// Id of another tool that the plugin may call
    #[arg(long, value_name = "ID")]
    tool: Vec<String>,
    /// Key of the call's context that the plugin may read
    #[arg(long, value_name = "KEY")]
    context: Vec<String>,
    /// Access to the blackboard of the conversation
    #[arg(long, value_name = "read|read-write")]
    blackboard: Option<String>,
    /// Questions to the person who uses the host
    #[arg(long)]
    ask: bool,
    /// Name of a stored secret; needs --to and --as
    #[arg(long, value_name = "NAME", requires_all = ["to", "placement"])]
    secret: Option<String>,
    /// Host and path to which the secret is sent
    #[arg(long, value_name = "HOST[:PORT][/PATH]", requires = "secret")]
    to: Option<String>,
    /// Part of the request that carries the secret: `bearer`, `basic`, `header:NAME` or `query:NAME`
    #[arg(long = "as", id = "placement", value_name = "PLACEMENT", requires = "secret")]
    placement: Option<String>,
}

impl RuleFlags {
    /// Parses the rules.
    pub(super) fn parse(&self) -> Result<GrantRules, RuleError> {
        let addresses: Vec<AddressRange> = parse_all(&self.address, |address| address.parse())?;
        let mut files = parse_all(&self.read, |rule| parse_directory(rule, AccessMode::Read, None))?;
        let parse_writable = |rule: &str| parse_directory(rule, AccessMode::ReadWrite, self.quota.as_deref());
        files.extend(parse_all(&self.write, parse_writable)?);
        let config: BTreeMap<_, _> = parse_all(&self.config, |rule| {
            let (key, value) = rule.split_once('=').ok_or_else(|| form_error(rule, "KEY=VALUE"))?;
            Ok((key.to_owned(), value.to_owned()))
        })?
        .into_iter()
        .collect();
        Ok(GrantRules {
            http: parse_all(&self.http, |rule| {
                Ok(HttpRule::parse(rule)?.with_addresses(addresses.clone()))
            })?,
            files,
            env: parse_all(&self.env, |rule| match rule.split_once('=') {
                Some((name, value)) => EnvRule::new(name, Some(value)),
                None => EnvRule::new(rule, None),
            })?,
            secrets: self.parse_secret()?.into_iter().collect(),
            config,
            keyvalue: self.keyvalue.as_deref().map(parse_keyvalue_quota).transpose()?,
            tools: self.tool.clone(),
            context: self.context.clone(),
            blackboard: self.blackboard.as_deref().map(str::parse).transpose()?,
            ask: self.ask,
            ..GrantRules::default()
        })
    }

    fn parse_secret(&self) -> Result<Option<SecretRule>, RuleError> {
        match (&self.secret, &self.to, &self.placement) {
            (Some(name), Some(to), Some(placement)) => {
                let placement: SecretPlacement = placement.parse()?;
                SecretRule::sent_to(name, to, placement).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// Returns the kinds of rules that `rules` contains, each with a list of capabilities. A rule has an effect only if the
/// component imports at least one of the capabilities of its kind.
pub(super) fn rule_kinds(rules: &GrantRules) -> Vec<(&'static str, &'static [Capability])> {
    let kinds = [
        (!rules.http.is_empty(), "http", &[Capability::Http][..]),
        (!rules.files.is_empty(), "files", &[Capability::Files]),
        (!rules.env.is_empty(), "env", &[Capability::Env]),
        (!rules.config.is_empty(), "config", &[Capability::Config]),
        (rules.keyvalue.is_some(), "keyvalue", &[Capability::Keyvalue]),
        (!rules.tools.is_empty(), "tools", &[Capability::Tools]),
        (!rules.context.is_empty(), "context", &[Capability::Context]),
        (rules.blackboard.is_some(), "blackboard", &[Capability::Blackboard]),
        (rules.ask, "ask", &[Capability::Ask]),
        (
            !rules.secrets.is_empty(),
            "secret",
            &[Capability::Http, Capability::Env],
        ),
    ];
    let granted_kinds = kinds.into_iter().filter(|(is_granted, ..)| *is_granted);
    granted_kinds
        .map(|(_, kind, capabilities)| (kind, capabilities))
        .collect()
}

fn parse_all<T>(texts: &[String], parse: impl Fn(&str) -> Result<T, RuleError>) -> Result<Vec<T>, RuleError> {
    texts.iter().map(|text| parse(text)).collect()
}

fn parse_directory(rule: &str, access: AccessMode, quota: Option<&str>) -> Result<DirectoryRule, RuleError> {
    let parts = rule.split_once("::").filter(|(host, _)| !host.is_empty());
    let (host, guest) = parts.ok_or_else(|| form_error(rule, "DIR::GUEST"))?;
    // The path is made absolute, because the grant must not depend on the current directory of the shell.
    let absolute = std::path::absolute(Path::new(host)).map_err(|error| {
        RuleError::new(format!(
            "`{}` has no absolute path, because the current directory is unavailable: {error}",
            host.escape_debug()
        ))
    })?;
    let absolute = absolute
        .to_str()
        .ok_or_else(|| RuleError::new("the path of the current directory is not UTF-8; use an absolute path"))?;
    DirectoryRule::new(absolute, guest, access, quota)
}

fn parse_keyvalue_quota(quota: &str) -> Result<KeyValueRule, RuleError> {
    let quota = quota.parse::<ByteCount>();
    let quota_bytes = quota.map_err(|error| RuleError::new(error.to_string()))?.0;
    Ok(KeyValueRule { quota_bytes })
}

fn form_error(text: &str, form: &str) -> RuleError {
    RuleError::new(format!("`{}` is not of the form `{form}`", text.escape_debug()))
}
