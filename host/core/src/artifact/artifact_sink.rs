//! Receivers of artifacts.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Artifact, Error, ToolContext};

/// A receiver of artifacts, such as the blackboard, a list or an event stream. A closure that takes an artifact is a sink.
pub trait ArtifactSink: Send + Sync {
    /// Receives an artifact.
    ///
    /// # Errors
    /// If the artifact could not be stored. The error is appended to the text of the tool's result.
    fn receive(&self, artifact: &Artifact, context: &ToolContext) -> Result<(), Error>;

    /// Returns whether the sink stores artifacts only within the run of the call, for example on its blackboard. The default
    /// is `false`. A tool whose artifacts pass to a sink outside the run has the class
    /// [`EffectClass::Write`](crate::EffectClass::Write).
    fn is_within_run(&self) -> bool {
        false
    }
}

impl<F: Fn(&Artifact) -> Result<(), Error> + Send + Sync> ArtifactSink for F {
    fn receive(&self, artifact: &Artifact, _context: &ToolContext) -> Result<(), Error> {
        self(artifact)
    }
}

/// A sink that stores artifacts on the [blackboard](ToolContext::blackboard) of the call.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlackboardSink;

impl ArtifactSink for BlackboardSink {
    fn receive(&self, artifact: &Artifact, context: &ToolContext) -> Result<(), Error> {
        context.blackboard()?.put(artifact.clone())
    }

    fn is_within_run(&self) -> bool {
        true
    }
}

/// A sink that collects artifacts in a list. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct ListSink {
    artifacts: Arc<Mutex<Vec<Artifact>>>,
}

impl ListSink {
    /// Creates a sink with an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the artifacts, oldest first.
    #[must_use]
    pub fn artifacts(&self) -> Vec<Artifact> {
        self.artifacts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ArtifactSink for ListSink {
    fn receive(&self, artifact: &Artifact, _context: &ToolContext) -> Result<(), Error> {
        let mut artifacts = self.artifacts.lock().unwrap_or_else(PoisonError::into_inner);
        artifacts.push(artifact.clone());
        Ok(())
    }
}

/// A sink that passes each artifact to several sinks, in order.
#[derive(Clone, Default)]
pub struct CompositeSink {
    sinks: Vec<Arc<dyn ArtifactSink>>,
}

impl CompositeSink {
    /// Creates a sink without receivers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a sink.
    #[must_use]
    pub fn and(mut self, sink: impl ArtifactSink + 'static) -> Self {
        self.sinks.push(Arc::new(sink));
        self
    }
}

impl ArtifactSink for CompositeSink {
    /// Passes the artifact to every sink, also after an error, and returns the first error.
    fn receive(&self, artifact: &Artifact, context: &ToolContext) -> Result<(), Error> {
        let mut result = Ok(());
        for sink in &self.sinks {
            result = result.and(sink.receive(artifact, context));
        }
        result
    }

    fn is_within_run(&self) -> bool {
        self.sinks.iter().all(|sink| sink.is_within_run())
    }
}
