//! Discovery of dynamic tools: the only part of the registry that runs guest code.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use tokio::time::Instant;

use super::catalog::TermExtractor;
use super::live::LiveRegistry;
use super::package::{Package, PackageStatus};
use super::reading::{Seen, Silent, content_of, indexed, record};
use super::scan::{SeenFiles, blocking, republish, warned};
use super::view::Registry;
use crate::store::{DynamicToolsRecord, PackageRecord, Store};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::Plugin;

/// How many plugins are asked at once. Each may compile first, which takes processors.
const AT_ONCE: usize = 4;

/// How many answers are published at once when many came: each publication makes a new view of all packages.
const ANSWERS_AT_ONCE_MAX: usize = 256;

/// After this long, a plugin that told nothing usable is asked again without being named. A hostile one costs seconds each time.
const AGAIN_AFTER: Duration = Duration::from_secs(300);

/// Why a package lacks tools that nobody asked for.
pub const TOOLS_NOT_DISCOVERED: &str = "it tells its tools when it runs, and was not asked yet";

/// Which plugins are asked for their tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiscoveryTargets<'a> {
    /// Those that were never asked, and those that told nothing usable a while ago.
    Pending,
    /// Those of these names that have such tools, whatever they told before.
    Named(&'a [String]),
    /// All that have such tools, whatever they told before.
    All,
}

/// Whether plugins are asked for the tools that they tell only when they run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DynamicDiscovery {
    /// When they are found, once: under limits, and with what is granted to them.
    #[default]
    Automatic,
    /// No: no guest code runs before a tool is called. The tools of such plugins are not there unless they were kept.
    Never,
}

/// What came of asking a plugin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DiscoveryOutcome {
    /// The plugin.
    pub plugin: String,
    /// How many tools it has now, those included that are known from its types; or why none of those that it tells can be used.
    pub tools: Result<usize, Error>,
}

/// A plugin that was asked, and the one that knows more.
struct Answer {
    path: PathBuf,
    plugin: Arc<Plugin>,
    told: Result<Arc<Plugin>, Error>,
}

impl Package {
    /// Says why its tools are not all known and what helps: it tells them when it runs, and was not asked yet or told nothing
    /// that can be used. The others work.
    #[must_use]
    pub fn discovery_error(&self) -> Option<Error> {
        self.plugin()
            .filter(|plugin| plugin.dynamic_tools().is_undiscovered())?;
        let asks = format!("`toolwit refresh {}` asks it", self.name);
        let error = match &self.discovery_failure {
            Some(error) => {
                let hint = match &error.suggestion {
                    Some(helps) => format!("{helps}; then {asks} again"),
                    None => format!("{asks} again"),
                };
                Error::clone(error).with_suggestion(hint)
            }
            None => Error::new(ErrorKind::ToolUnavailable, Phase::Registry, TOOLS_NOT_DISCOVERED)
                .with_suggestion(format!("{asks} now; a host does when it starts")),
        };
        Some(error.with_plugin(&*self.name))
    }
}

impl LiveRegistry {
    /// Asks plugins for the tools that they tell only when they run, and publishes what each told as it comes. It is kept in
    /// the store, by the plugin's name and the digest of its component, so that nobody asks twice.
    ///
    /// One that tells nothing usable says why ([`Package::discovery_error`]) until it is asked again; its other tools work, and what it
    /// told before stays. Only one that cannot run at all is broken. A registry that never changes asks nobody.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when a task of the host fails. How each plugin answered is no error here.
    pub async fn discover_dynamic_tools(&self, ask: DiscoveryTargets<'_>) -> Result<Vec<DiscoveryOutcome>, Error> {
        if self.is_fixed() {
            return Ok(Vec::new());
        }
        let _one_at_a_time = self.inner.asking.lock().await;
        let wanted = wanted(&self.current(), &*self.inner.seen.lock().await, ask);
        let store = self.current().store().clone();
        let answers = futures::stream::iter(wanted)
            .map(|(path, plugin)| asked(&store, path, plugin, ask))
            .buffer_unordered(AT_ONCE)
            .ready_chunks(ANSWERS_AT_ONCE_MAX);
        let mut answers = pin!(answers);
        let mut asked: Vec<DiscoveryOutcome> = Vec::new();
        while let Some(round) = answers.next().await {
            asked.extend(round.iter().map(Answer::report));
            self.publish(round).await?;
        }
        asked.sort_by(|one, other| one.plugin.cmp(&other.plugin));
        Ok(asked)
    }

    /// Takes over what plugins answered.
    async fn publish(&self, answers: Vec<Answer>) -> Result<(), Error> {
        let mut seen = self.inner.seen.lock().await;
        let (earlier, mut now) = (self.current(), seen.clone());
        let store = earlier.store().clone();
        let taken = blocking(move || {
            let taken = take_over(&mut now, answers);
            if taken.is_nothing {
                return Ok(None);
            }
            warned(store.save_dynamic_tools(&taken.told));
            warned(store.update_packages(&taken.packages, &[]));
            Ok(Some((republish(&earlier, &now, store), now)))
        });
        if let Some((registry, now)) = taken.await? {
            *seen = now;
            self.inner.current.send_replace(registry);
        }
        Ok(())
    }
}

impl Answer {
    fn report(&self) -> DiscoveryOutcome {
        DiscoveryOutcome {
            plugin: self.plugin.name().to_owned(),
            tools: self
                .told
                .as_ref()
                .map(|plugin| plugin.tool_count())
                .map_err(Error::clone),
        }
    }
}

/// Chooses whom to ask.
fn wanted(registry: &Registry, seen: &SeenFiles, ask: DiscoveryTargets<'_>) -> Vec<(PathBuf, Arc<Plugin>)> {
    let names: HashSet<&str> = match ask {
        DiscoveryTargets::Named(names) => names.iter().map(String::as_str).collect(),
        DiscoveryTargets::Pending | DiscoveryTargets::All => HashSet::new(),
    };
    let choose = |package: &Package| {
        let seen = seen.get(&package.path);
        let silent = seen.and_then(|seen| seen.silent.as_ref());
        // One that is broken because nobody may say whose its name is, is none to ask.
        let broken = || silent.filter(|_| seen.is_some_and(|seen| seen.package.plugin().is_none()));
        let plugin = package.plugin().or_else(|| broken().map(|silent| &silent.plugin))?;
        let is_wanted = match ask {
            DiscoveryTargets::Pending => {
                plugin.dynamic_tools().is_undiscovered()
                    && silent.is_none_or(|silent| silent.since.elapsed() >= AGAIN_AFTER)
            }
            DiscoveryTargets::Named(_) => names.contains(&*package.name) && !plugin.dynamic_tools().is_none(),
            DiscoveryTargets::All => !plugin.dynamic_tools().is_none(),
        };
        is_wanted.then(|| (package.path.clone(), plugin.clone()))
    };
    registry.packages().iter().filter_map(choose).collect()
}

/// Takes what another process kept, or asks.
async fn asked(store: &Arc<dyn Store>, path: PathBuf, plugin: Arc<Plugin>, ask: DiscoveryTargets<'_>) -> Answer {
    let (name, digest) = (plugin.name().to_owned(), plugin.digest().to_owned());
    let store = store.clone();
    let look_up = move || Ok(warned(store.dynamic_tools(&name, &digest)));
    let kept = match ask {
        DiscoveryTargets::Pending => blocking(look_up).await.ok().flatten(),
        DiscoveryTargets::Named(_) | DiscoveryTargets::All => None,
    };
    let told = match kept.and_then(|kept| plugin.with_discovered_tools(&kept)) {
        Some(plugin) => Ok(plugin),
        None => plugin.rediscover_tools().await,
    };
    if let Err(error) = &told {
        tracing::warn!(plugin = plugin.name(), %error, "a plugin told no tools");
    }
    Answer { path, plugin, told }
}

/// What is to be remembered of answers.
struct Taken {
    packages: Vec<PackageRecord>,
    told: Vec<DynamicToolsRecord>,
    is_nothing: bool,
}

/// Puts answers into what was seen, unless their file is another one by now.
fn take_over(seen: &mut SeenFiles, answers: Vec<Answer>) -> Taken {
    let mut terms = TermExtractor::new();
    let mut taken = Taken {
        packages: Vec::new(),
        told: Vec::new(),
        is_nothing: true,
    };
    for Answer { path, plugin, told } in answers {
        let Some(before) = seen.get(&path).filter(|seen| is_of(seen, &plugin)) else {
            continue;
        };
        let now = match told {
            Ok(told) => {
                taken
                    .told
                    .extend(told.inspection().discovered_tools().map(|text| DynamicToolsRecord {
                        plugin: told.name().to_owned(),
                        digest: told.digest().to_owned(),
                        told: text,
                    }));
                let (now, record) = before.telling(&path, told, &mut terms);
                taken.packages.push(record);
                now
            }
            // What it told before still holds.
            Err(_) if !plugin.dynamic_tools().is_undiscovered() => continue,
            Err(error) => before.silenced(plugin, error),
        };
        seen.insert(path, Arc::new(now));
        taken.is_nothing = false;
    }
    taken
}

/// Whether a component can do nothing at all, whoever asks.
fn is_unusable(error: &Error) -> bool {
    matches!(
        error.kind,
        ErrorKind::MalformedComponent | ErrorKind::Unsupported | ErrorKind::UnknownImport
    )
}

fn is_of(seen: &Seen, plugin: &Arc<Plugin>) -> bool {
    let silent = seen.silent.as_ref().map(|silent| &silent.plugin);
    [seen.package.plugin(), silent]
        .into_iter()
        .flatten()
        .any(|known| Arc::ptr_eq(known, plugin))
}

impl Seen {
    /// The same files, with a plugin that told more, and what is to be remembered of it.
    fn telling(&self, path: &Path, plugin: Arc<Plugin>, terms: &mut TermExtractor) -> (Self, PackageRecord) {
        let manifest = self.package.manifest.as_deref();
        let mut record = record(&self.package.name, path, plugin.inspection(), manifest, terms);
        record.stamp = self.stamp.clone().unwrap_or_default();
        let content = content_of(&record);
        record.content = content.to_string();
        let seen = Self {
            package: Package {
                status: PackageStatus::Ready(plugin),
                discovery_failure: None,
                ..self.package.clone()
            },
            stamp: self.stamp.clone(),
            content,
            tools: indexed(&record),
            silent: None,
        };
        (seen, record)
    }

    /// The same files, with a plugin that told nothing usable. The tools of its types stay.
    fn silenced(&self, plugin: Arc<Plugin>, error: Error) -> Self {
        let is_unusable = is_unusable(&error);
        let package = self.package.clone();
        let package = match is_unusable {
            true => Package {
                status: PackageStatus::Broken(error),
                ..package
            },
            false => Package {
                status: PackageStatus::Ready(plugin.clone()),
                discovery_failure: Some(Arc::new(error)),
                ..package
            },
        };
        Self {
            package,
            stamp: self.stamp.clone(),
            content: self.content,
            tools: self.tools.clone(),
            silent: Some(Silent {
                plugin,
                since: Instant::now(),
            }),
        }
    }
}
