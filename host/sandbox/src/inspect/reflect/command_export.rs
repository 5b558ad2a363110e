//! Reads the export of a command-line program, `wasi:cli/run`.

use std::sync::Arc;

use wasmparser::component_types::{
    ComponentDefinedType, ComponentEntityType, ComponentInstanceTypeId, ComponentValType,
};

use super::ExportReader;
use crate::values::types::{Function, FunctionKind};

impl<'a> ExportReader<'a> {
    /// Reads the export of a program, which becomes one tool.
    pub(super) fn read_command(&mut self, name: &str, interface: ComponentInstanceTypeId) {
        if !self.has_run_function(interface) {
            self.skip(name, "it has no function `run: func() -> result`");
        } else if let Some(later) = self.find_later_command(name) {
            self.skip(name, format!("`{later}` runs the same program"));
        } else {
            self.add_command(name);
        }
    }

    /// Returns the export that runs the same program for a later version of WASI. A program for WASI 0.3 has two exports if its
    /// toolchain adds the export for WASI 0.2 to every program.
    fn find_later_command(&self, name: &str) -> Option<&'a str> {
        let is_later = |export: &&&str| {
            is_command(export)
                && wasi_version(export) > wasi_version(name)
                && match self
                    .type_reader
                    .types
                    .component_item_for_export(export)
                    .map(|item| &item.ty)
                {
                    Some(ComponentEntityType::Instance(id)) => self.has_run_function(*id),
                    _ => false,
                }
        };
        self.exports.iter().find(is_later).copied()
    }

    /// Returns whether an interface has the function `run: func() -> result`.
    fn has_run_function(&self, interface: ComponentInstanceTypeId) -> bool {
        let Some(ComponentEntityType::Func(id)) = self.type_reader.types[interface]
            .exports
            .get("run")
            .map(|item| &item.ty)
        else {
            return false;
        };
        let run = &self.type_reader.types[*id];
        let returns_bare_result = match run.result {
            Some(ComponentValType::Type(id)) => matches!(
                &self.type_reader.types[id],
                ComponentDefinedType::Result {
                    ok: None,
                    err: None,
                    ..
                }
            ),
            _ => false,
        };
        run.params.is_empty() && returns_bare_result
    }

    fn add_command(&mut self, interface: &str) {
        self.shape.functions.push(Function {
            interface: Some(interface.into()),
            export: "run".to_owned(),
            kind: FunctionKind::Command,
            name: "run".to_owned(),
            params: Vec::new(),
            result: None,
            returns_tool_result: false,
            docs: None,
            effect: None,
            input_schema: Arc::default(),
            output_schema: None,
        });
    }
}

/// Returns whether an interface is `wasi:cli/run` of WASI 0.2 or 0.3.
pub(super) fn is_command(interface: &str) -> bool {
    interface
        .strip_prefix("wasi:cli/run@")
        .is_some_and(|version| version.starts_with("0.2.") || version.starts_with("0.3."))
}

/// Returns the version of an interface as numbers, such as `[0, 3, 1]`.
fn wasi_version(interface: &str) -> Vec<u64> {
    let version = interface.rsplit('@').next().unwrap_or_default();
    version.split(['.', '-']).map_while(|part| part.parse().ok()).collect()
}
