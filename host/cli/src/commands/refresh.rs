//! `toolwit refresh`: plugins are asked for the tools that they tell only when they run.

use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::limits::LimitFlags;
use crate::input::plugins::{AuthorityFlags, PluginFlags};
use crate::output::page::{BAD, FAINT, Page, counted};
use crate::output::printer::{Format, Printer};
use crate::output::progress::with_spinner;
use toolwit::Toolwit;
use toolwit::registry::{DiscoveryOutcome, DiscoveryTargets, DynamicDiscovery};
use toolwit::{Error, ErrorKind, Phase};

/// Ask plugins for the tools that they tell only when they run
///
/// Most plugins have their tools in their types; some know them only when they run, such as those of an API that a setting names.
/// They are asked once, when they are added or a host starts that may use them, and what they tell is kept. This asks them again: after a
/// setting or a grant has changed, or when they failed.
#[derive(Debug, clap::Args)]
pub(crate) struct Refresh {
    /// The plugins' names [default: all that have such tools]
    #[arg(value_name = "PLUGIN")]
    names: Vec<String>,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    authority: AuthorityFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

impl Refresh {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let host = self.plugins.granted(&self.limits, &self.authority).await?;
        let host = host.dynamic_discovery(DynamicDiscovery::Never).build().await?;
        let registry = host.registry();
        if let Some(name) = self.names.iter().find(|name| registry.package(name).is_none()) {
            let message = format!("there is no plugin `{name}`");
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("`toolwit list` shows those that there are")
                .into());
        }
        let wanted = match self.names.as_slice() {
            [] => DiscoveryTargets::All,
            names => DiscoveryTargets::Named(names),
        };
        let asked = ask(&host, wanted, printer).await?;
        tell(&asked, printer)?;
        let failed = asked.iter().find_map(|asked| asked.tools.as_ref().err());
        Ok(failed.map_or(Exit::Success, Exit::of))
    }
}

/// Asks plugins, and tells about it when it takes long.
pub(crate) async fn ask(
    host: &Toolwit,
    ask: DiscoveryTargets<'_>,
    printer: Printer,
) -> Result<Vec<DiscoveryOutcome>, Error> {
    with_spinner(
        printer,
        "asking plugins for their tools",
        host.live_registry().discover_dynamic_tools(ask),
    )
    .await
}

fn tell(asked: &[DiscoveryOutcome], printer: Printer) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        let document = |asked: &DiscoveryOutcome| match &asked.tools {
            Ok(tools) => json!({"plugin": asked.plugin, "ok": true, "tools": tools}),
            Err(error) => json!({"plugin": asked.plugin, "ok": false, "error": error}),
        };
        return printer.document(&json!({"asked": asked.iter().map(document).collect::<Vec<_>>()}));
    }
    let mut page = Page::new();
    for DiscoveryOutcome { plugin, tools, .. } in asked {
        match tools {
            Ok(tools) => page.text(plugin).text("  ").styled(FAINT, counted(*tools, "tool")),
            Err(error) => page
                .text(plugin)
                .text("  ")
                .styled(BAD, "failed:")
                .text(" ")
                .quoted(&error.message),
        };
        page.end();
    }
    printer.data(&page)?;
    if asked.is_empty() {
        printer.hint("none of the plugins has tools that it tells only when it runs");
    }
    Ok(())
}
