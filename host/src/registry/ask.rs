//! Asking plugins for the tools that they tell only when they run: the one place of the registry in which guest code runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;

use super::catalog::TermReader;
use super::live::LiveRegistry;
use super::package::{Package, PackageStatus};
use super::reading::{Seen, Silent, content_of, indexed, record};
use super::scan::{SeenFiles, blocking, republish, warned};
use super::view::Registry;
use crate::error::{Error, ErrorKind, Phase};
use crate::plugin::Plugin;
use crate::store::{PackageRecord, Store};

/// How many plugins are asked at once. Each may compile first, which takes processors.
const AT_ONCE: usize = 4;

/// After this long, a plugin that told nothing usable is asked again without being named. A hostile one costs seconds each time.
const AGAIN_AFTER: Duration = Duration::from_secs(300);

/// Why a package lacks tools that nobody asked for.
pub(crate) const UNASKED: &str = "it tells its tools when it runs, and was not asked yet";

/// Which plugins are asked for their tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ask<'a> {
    /// Those that were never asked, and those that told nothing usable a while ago.
    Unasked,
    /// Those of these names that have such tools, whatever they told before.
    Anew(&'a [String]),
}

/// Whether plugins are asked for the tools that they tell only when they run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskPlugins {
    /// When they are found, once: under limits, and with what is granted to them.
    #[default]
    WhenFound,
    /// No: no guest code runs before a tool is called. The tools of such plugins are not there unless they were kept.
    Never,
}

/// What came of asking a plugin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Asked {
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
    /// Says why its tools are not all known and what helps: it tells them when it runs, and was not asked yet.
    #[must_use]
    pub fn unasked(&self) -> Option<Error> {
        self.plugin().filter(|plugin| plugin.awaits_tools())?;
        let hint = format!(
            "`toolwit refresh {}` asks it now; a conversation does when it starts",
            self.name
        );
        let error = Error::new(ErrorKind::ToolUnavailable, Phase::Registry, UNASKED);
        Some(error.with_suggestion(hint).with_plugin(&*self.name))
    }
}

impl LiveRegistry {
    /// Asks plugins for the tools that they tell only when they run, and publishes what they told. It is kept in the store, by
    /// the plugin's name and the digest of its component, so that nobody asks twice.
    ///
    /// One that tells nothing usable is broken, with the reason, until it is asked again; what it told before stays. A
    /// registry that never changes asks nobody.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when a task of the host fails. How each plugin answered is no error here.
    pub async fn take_tools(&self, ask: Ask<'_>) -> Result<Vec<Asked>, Error> {
        let _one_at_a_time = self.inner.asking.lock().await;
        let wanted = wanted(&self.current(), &*self.inner.seen.lock().await, ask);
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let store = self.current().store().clone();
        let answers: Vec<Answer> = futures::stream::iter(wanted)
            .map(|(path, plugin)| asked(&store, path, plugin, ask))
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        let mut asked: Vec<_> = answers.iter().map(Answer::report).collect();
        asked.sort_by(|one, other| one.plugin.cmp(&other.plugin));
        let mut seen = self.inner.seen.lock().await;
        let (earlier, mut now) = (self.current(), seen.clone());
        let store = earlier.store().clone();
        let (registry, now) = blocking(move || {
            let changed = take_over(&mut now, answers, &*store);
            warned(store.update_packages(&changed, &[]));
            Ok((republish(&earlier, &now, store), now))
        })
        .await?;
        *seen = now;
        self.inner.current.send_replace(registry);
        Ok(asked)
    }
}

impl Answer {
    fn report(&self) -> Asked {
        Asked {
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
fn wanted(registry: &Registry, seen: &SeenFiles, ask: Ask<'_>) -> Vec<(PathBuf, Arc<Plugin>)> {
    let silent = |package: &Package| {
        let silent = seen.get(&package.path)?.silent.as_ref()?;
        let is_due = match ask {
            Ask::Unasked => silent.since.elapsed() >= AGAIN_AFTER,
            Ask::Anew(names) => names.contains(&package.name),
        };
        is_due.then(|| silent.plugin.clone())
    };
    let is_wanted = |plugin: &&Arc<Plugin>| match ask {
        Ask::Unasked => plugin.awaits_tools(),
        Ask::Anew(names) => names.iter().any(|name| name == plugin.name()) && plugin.inspection().has_dynamic_tools(),
    };
    let choose = |package: &Package| {
        let plugin = match package.plugin() {
            Some(plugin) => Some(plugin).filter(is_wanted).cloned(),
            None => silent(package),
        };
        Some((package.path.clone(), plugin?))
    };
    registry.packages().iter().filter_map(choose).collect()
}

/// Takes what another process kept, or asks.
async fn asked(store: &Arc<dyn Store>, path: PathBuf, plugin: Arc<Plugin>, ask: Ask<'_>) -> Answer {
    let (name, digest) = (plugin.name().to_owned(), plugin.digest().to_owned());
    let store = store.clone();
    let look_up = move || Ok(warned(store.told_tools(&name, &digest)));
    let kept = match ask {
        Ask::Unasked => blocking(look_up).await.ok().flatten(),
        Ask::Anew(_) => None,
    };
    let told = match kept.and_then(|kept| plugin.with_told(&kept)) {
        Some(plugin) => Ok(plugin),
        None => plugin.take_tools_anew().await,
    };
    if let Err(error) = &told {
        tracing::warn!(plugin = plugin.name(), %error, "a plugin told no tools");
    }
    Answer { path, plugin, told }
}

/// Puts answers into what was seen, unless their file is another one by now. Returns what is to be remembered.
fn take_over(seen: &mut SeenFiles, answers: Vec<Answer>, store: &dyn Store) -> Vec<PackageRecord> {
    let mut terms = TermReader::new();
    let mut changed = Vec::new();
    for Answer { path, plugin, told } in answers {
        let Some(before) = seen.get(&path).filter(|seen| is_of(seen, &plugin)) else {
            continue;
        };
        let now = match told {
            Ok(told) => {
                if let Some(text) = told.inspection().told() {
                    warned(store.keep_told_tools(told.name(), told.digest(), &text));
                }
                let (now, record) = before.telling(&path, told, &mut terms);
                changed.push(record);
                now
            }
            // What it told before still holds.
            Err(_) if !plugin.awaits_tools() => continue,
            Err(error) => before.silenced(plugin, error),
        };
        seen.insert(path, Arc::new(now));
    }
    changed
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
    fn telling(&self, path: &Path, plugin: Arc<Plugin>, terms: &mut TermReader) -> (Self, PackageRecord) {
        let manifest = self.package.manifest.as_deref();
        let mut record = record(&self.package.name, path, plugin.inspection(), manifest, terms);
        record.stamp = self.stamp.clone().unwrap_or_default();
        let content = content_of(&record);
        record.content = content.to_string();
        let seen = Self {
            package: Package {
                status: PackageStatus::Ready(plugin),
                ..self.package.clone()
            },
            stamp: self.stamp.clone(),
            content,
            tools: indexed(&record),
            silent: None,
        };
        (seen, record)
    }

    /// The same files, with a plugin that told nothing usable.
    fn silenced(&self, plugin: Arc<Plugin>, error: Error) -> Self {
        let package = Package {
            status: PackageStatus::Broken(error),
            ..self.package.clone()
        };
        let since = Instant::now();
        Self {
            package,
            stamp: self.stamp.clone(),
            content: self.content,
            tools: Arc::from([]),
            silent: Some(Silent { plugin, since }),
        }
    }
}
