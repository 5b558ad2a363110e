//! `toolwit explain`: whether a plugin may do something, and by which rule.

use serde_json::json;

use super::grant::find;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::grants::GrantFlags;
use crate::input::limits::LimitFlags;
use crate::input::plugins::PluginFlags;
use crate::output::page::{BAD, GOOD, Page};
use crate::output::printer::{Format, Printer};
use toolwit::grants::{AccessMode, AccessRequest, Decision, EffectiveRights, RequestTarget, decide};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit explain fetch 'GET https://api.example.com:8443/a'
  toolwit explain notes read /notes/a.txt
  toolwit explain notes env LANG";

/// Say whether a plugin may do something, and by which rule
///
/// The answer comes from the same code that judges the plugin's calls. Whether the address behind a granted name is public is
/// known only when it is looked up, at the call.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Explain {
    /// The plugin's name, as `toolwit list` shows it
    plugin: String,
    /// A request (`[METHOD] URL`), `read PATH`, `write PATH`, `env NAME`, `config KEY`, `tool ID`, `context KEY`,
    /// `blackboard [read|write]` or `keyvalue`
    #[arg(required = true, num_args = 1..=2, value_name = "WHAT")]
    what: Vec<String>,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    grants: GrantFlags,
}

impl Explain {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let host = self.plugins.load(&LimitFlags::default()).await?;
        let plugin = find(&host, &self.plugin)?;
        let grants = self.grants.read()?;
        let effective = EffectiveRights::new(plugin.declared(), &grants, plugin.name(), &plugin.inspection().digest);
        let what = self.what.join(" ");
        let (decision, rule) = judge(&effective, &what)?;
        let (is_allowed, why) = match &decision {
            Decision::Allowed { rule: number } => (true, format!("rule {number}: {rule}")),
            Decision::Denied(denial) => (false, denial.to_string()),
        };
        match printer.format() {
            Format::Json => {
                printer.document(&json!({"plugin": plugin.name(), "what": what, "allowed": is_allowed, "why": why}))?;
            }
            Format::Human => {
                let mut page = Page::new();
                let (style, word) = if is_allowed { (GOOD, "allowed") } else { (BAD, "denied") };
                page.styled(style, word).text(": ").text(why).end();
                printer.data(&page)?;
            }
        }
        Ok(if is_allowed { Exit::Success } else { Exit::Stopped })
    }
}

/// Decides, and tells the rule that allows it.
fn judge(effective: &EffectiveRights, what: &str) -> Result<(Decision, String), Error> {
    let told = |decision: Decision, rules: Vec<String>| {
        let rule = match &decision {
            Decision::Allowed { rule } => rules.get(rule - 1).cloned().unwrap_or_default(),
            Decision::Denied(_) => String::new(),
        };
        (decision, rule)
    };
    let (verb, rest) = what.split_once(' ').unwrap_or((what, ""));
    Ok(match verb {
        "read" | "write" => {
            let access = if verb == "read" {
                AccessMode::Read
            } else {
                AccessMode::ReadWrite
            };
            let rules = effective.files.iter().map(ToString::to_string).collect();
            told(decide(effective, &AccessRequest::File(rest, access)), rules)
        }
        "env" => {
            let exposed = effective.secrets.iter().filter_map(|rule| rule.exposed_as.clone());
            let rules = effective
                .env
                .iter()
                .map(|rule| rule.name.clone())
                .chain(exposed)
                .collect();
            told(decide(effective, &AccessRequest::Variable(rest)), rules)
        }
        "config" => told(
            decide(effective, &AccessRequest::Setting(rest)),
            effective.config.keys().cloned().collect(),
        ),
        "tool" => told(decide(effective, &AccessRequest::Tool(rest)), effective.tools.clone()),
        "context" => told(
            decide(effective, &AccessRequest::ContextKey(rest)),
            effective.context.clone(),
        ),
        "blackboard" => {
            let access = if rest == "write" {
                AccessMode::ReadWrite
            } else {
                AccessMode::Read
            };
            let rules = effective
                .blackboard
                .iter()
                .map(|access| format!("the blackboard, {access}"));
            told(decide(effective, &AccessRequest::Blackboard(access)), rules.collect())
        }
        "keyvalue" => told(
            decide(effective, &AccessRequest::KeyValue),
            vec!["a key–value store".to_owned()],
        ),
        _ => {
            let target = RequestTarget::parse(what).map_err(|error| {
                Error::new(ErrorKind::Configuration, Phase::Registry, error.to_string())
                    .with_suggestion("write a request as `GET https://example.com/a`, or `read PATH`, `env NAME`, …")
            })?;
            let rules = effective.http.iter().map(ToString::to_string).collect();
            told(decide(effective, &AccessRequest::Http(&target)), rules)
        }
    })
}
