//! `toolwit refresh`: discovers dynamic tools again.

use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::limits::LimitFlags;
use crate::input::plugins::{GrantAndSecretFlags, PluginFlags};
use crate::output::page::{BAD, FAINT, Page, counted};
use crate::output::printer::{Format, Printer};
use crate::output::progress::with_spinner;
use toolwit::Toolwit;
use toolwit::registry::{DiscoveryOutcome, DiscoveryTargets, DynamicDiscovery};
use toolwit::{Error, ErrorKind, Phase};

/// Discover the dynamic tools of plugins again
///
/// Most tools are declared by the types of a component. Some plugins list theirs at run time, for example those of a
/// configured API. Their tools are discovered once, on `add` or when a host first needs them, and cached. Refresh them
/// after a change of configuration or grants, or after a failure.
#[derive(Debug, clap::Args)]
pub(crate) struct Refresh {
    /// Names of the plugins [default: all with dynamic tools]
    #[arg(value_name = "PLUGIN")]
    names: Vec<String>,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    grants_and_secrets: GrantAndSecretFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

impl Refresh {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let host = self
            .plugins
            .builder_with_grants(&self.limits, &self.grants_and_secrets)?;
        let host = host.dynamic_discovery(DynamicDiscovery::Never).build().await?;
        let registry = host.registry();
        if let Some(name) = self.names.iter().find(|name| registry.package(name).is_none()) {
            let message = format!("plugin `{name}` does not exist");
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("`toolwit list` lists the plugins")
                .into());
        }
        let targets = match self.names.as_slice() {
            [] => DiscoveryTargets::All,
            names => DiscoveryTargets::Named(names),
        };
        let outcomes = discover(&host, targets, printer).await?;
        print(&outcomes, printer)?;
        let first_error = outcomes.iter().find_map(|outcome| outcome.tools.as_ref().err());
        Ok(first_error.map_or(Exit::Success, Exit::of))
    }
}

/// Discovers dynamic tools, and shows a spinner if the discovery takes long.
pub(crate) async fn discover(
    host: &Toolwit,
    targets: DiscoveryTargets<'_>,
    printer: Printer,
) -> Result<Vec<DiscoveryOutcome>, Error> {
    with_spinner(
        printer,
        "discovering dynamic tools",
        host.live_registry().discover_dynamic_tools(targets),
    )
    .await
}

fn print(outcomes: &[DiscoveryOutcome], printer: Printer) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        let document = |outcome: &DiscoveryOutcome| match &outcome.tools {
            Ok(tools) => json!({"plugin": outcome.plugin, "ok": true, "tools": tools}),
            Err(error) => json!({"plugin": outcome.plugin, "ok": false, "error": error}),
        };
        return printer.document(&json!({"refreshed": outcomes.iter().map(document).collect::<Vec<_>>()}));
    }
    let mut page = Page::new();
    for DiscoveryOutcome { plugin, tools, .. } in outcomes {
        match tools {
            Ok(tools) => page.text(plugin).text("  ").styled(FAINT, counted(*tools, "tool")),
            Err(error) => page
                .text(plugin)
                .text("  ")
                .styled(BAD, "failed:")
                .text(" ")
                .text(&error.message),
        };
        page.end();
    }
    printer.print_page(&page)?;
    if outcomes.is_empty() {
        printer.hint("no plugin has dynamic tools");
    }
    Ok(())
}
