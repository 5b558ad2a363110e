//! Discovery of dynamic tools with a time limit.

use tokio::task::JoinSet;

use toolwit_core::limits::DISCOVERY_WALL_MAX;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_registry::{DiscoveryOutcome, DiscoveryTargets, LiveRegistry};

/// A discovery of dynamic tools that runs in the background. Dropping the value stops the discovery.
pub struct DiscoveryTask {
    /// A set with one task. Unlike a `JoinHandle`, a `JoinSet` aborts its tasks when it is dropped.
    _task: JoinSet<Result<Vec<DiscoveryOutcome>, Error>>,
}

/// Discovers the dynamic tools that have not been discovered yet. Returns the task if the discovery takes longer than
/// ten seconds. Returns `None` if the discovery has ended or no dynamic tools are undiscovered.
pub(super) async fn discover(registry: &LiveRegistry) -> Result<Option<DiscoveryTask>, Error> {
    let Some(DiscoveryTask { _task: mut task }) = discover_in_background(registry) else {
        return Ok(None);
    };
    match tokio::time::timeout(DISCOVERY_WALL_MAX, task.join_next()).await {
        Err(_) => Ok(Some(DiscoveryTask { _task: task })),
        Ok(None | Some(Ok(Ok(_)))) => Ok(None),
        Ok(Some(Ok(Err(error)))) => Err(error),
        Ok(Some(Err(error))) => {
            let message = "the discovery of dynamic tools failed unexpectedly";
            Err(Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error))
        }
    }
}

/// Starts to discover the dynamic tools that have not been discovered yet. Returns `None` if there are no such tools.
pub(super) fn discover_in_background(registry: &LiveRegistry) -> Option<DiscoveryTask> {
    if !registry
        .current()
        .plugins()
        .any(|plugin| plugin.dynamic_tools_state().is_undiscovered())
    {
        return None;
    }
    let mut task = JoinSet::new();
    let live = registry.clone();
    task.spawn(async move {
        let outcomes = live.discover_dynamic_tools(DiscoveryTargets::Pending).await;
        if let Err(error) = &outcomes {
            tracing::warn!(%error, "dynamic tools cannot be discovered");
        }
        outcomes
    });
    Some(DiscoveryTask { _task: task })
}
