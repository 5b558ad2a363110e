//! Where the artifacts of a tool's results go besides the result.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Artifact, Error, ToolContext};

/// Takes artifacts: the blackboard, a list, an event stream. A closure over an artifact is a sink.
pub trait ArtifactSink: Send + Sync {
    /// Takes one artifact.
    ///
    /// # Errors
    /// Why it could not be kept; the model is told beside the result.
    fn take(&self, artifact: &Artifact, context: &ToolContext) -> Result<(), Error>;
}

impl<F: Fn(&Artifact) -> Result<(), Error> + Send + Sync> ArtifactSink for F {
    fn take(&self, artifact: &Artifact, _context: &ToolContext) -> Result<(), Error> {
        self(artifact)
    }
}

/// Puts artifacts on the blackboard of the call's process.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlackboardSink;

impl ArtifactSink for BlackboardSink {
    fn take(&self, artifact: &Artifact, context: &ToolContext) -> Result<(), Error> {
        context.blackboard()?.put(artifact.clone())
    }
}

/// Collects artifacts in a list, which all copies of it share.
#[derive(Clone, Debug, Default)]
pub struct ListSink {
    taken: Arc<Mutex<Vec<Artifact>>>,
}

impl ListSink {
    /// Makes an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns what was taken so far, the oldest first.
    #[must_use]
    pub fn artifacts(&self) -> Vec<Artifact> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ArtifactSink for ListSink {
    fn take(&self, artifact: &Artifact, _context: &ToolContext) -> Result<(), Error> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.push(artifact.clone());
        Ok(())
    }
}

/// Gives each artifact to several sinks, in order.
#[derive(Clone, Default)]
pub struct CompositeSink {
    sinks: Vec<Arc<dyn ArtifactSink>>,
}

impl CompositeSink {
    /// Makes a sink that drops everything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives artifacts to one more sink.
    #[must_use]
    pub fn and(mut self, sink: impl ArtifactSink + 'static) -> Self {
        self.sinks.push(Arc::new(sink));
        self
    }
}

impl ArtifactSink for CompositeSink {
    /// Every sink is asked, also after one that refused; the first refusal is told.
    fn take(&self, artifact: &Artifact, context: &ToolContext) -> Result<(), Error> {
        let mut outcome = Ok(());
        for sink in &self.sinks {
            outcome = outcome.and(sink.take(artifact, context));
        }
        outcome
    }
}
