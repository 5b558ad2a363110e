//! The tools that are declared to the model, in order.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::model::DeclaredTool;
use toolwit_core::{NamedTool, ToolDefinition, ToolName};

/// The declared tools, in order. The position of a tool can be looked up by its name.
#[derive(Clone, Default)]
pub(super) struct DeclaredTools {
    tools: Vec<DeclaredTool>,
    positions: HashMap<ToolName, usize>,
    /// The size of all definitions in bytes, cached until the tools change.
    definition_bytes: OnceLock<usize>,
}

impl DeclaredTools {
    pub(super) fn as_slice(&self) -> &[DeclaredTool] {
        &self.tools
    }

    pub(super) fn len(&self) -> usize {
        self.tools.len()
    }

    /// Returns the size that the descriptions and input schemas of all tools have in a request, in bytes.
    pub(super) fn definition_bytes(&self) -> usize {
        let sizes = || self.tools.iter().map(|tool| definition_bytes(&tool.definition)).sum();
        *self.definition_bytes.get_or_init(sizes)
    }

    /// Appends a tool. Returns `false` if a tool with this name is already declared.
    pub(super) fn push(&mut self, tool: &NamedTool) -> bool {
        if self.positions.contains_key(&tool.name) {
            return false;
        }
        self.definition_bytes.take();
        self.positions.insert(tool.name.clone(), self.tools.len());
        self.tools.push(DeclaredTool {
            name: tool.name.clone(),
            definition: tool.definition.clone(),
        });
        true
    }

    /// Replaces the definition of a tool, if the tool is declared.
    pub(super) fn redefine(&mut self, name: &ToolName, definition: Arc<ToolDefinition>) {
        if let Some(&position) = self.positions.get(name) {
            self.definition_bytes.take();
            self.tools[position].definition = definition;
        }
    }

    /// Removes the tools for which `keep` returns `false`. `keep` may change the definitions of the remaining tools.
    pub(super) fn retain(&mut self, keep: impl FnMut(&mut DeclaredTool) -> bool) {
        self.definition_bytes.take();
        self.tools.retain_mut(keep);
        let names = self.tools.iter().map(|tool| tool.name.clone());
        self.positions = names.zip(0..).collect();
    }

    /// Removes all tools and returns their names.
    pub(super) fn take(&mut self) -> Vec<ToolName> {
        self.definition_bytes.take();
        self.positions.clear();
        self.tools.drain(..).map(|tool| tool.name).collect()
    }
}

/// Returns the size that the description and the input schema of a tool have in a request, in bytes.
pub(super) fn definition_bytes(definition: &ToolDefinition) -> usize {
    definition.description.len() + definition.input_schema.to_string().len()
}
