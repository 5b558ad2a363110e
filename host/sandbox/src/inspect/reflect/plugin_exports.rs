//! Reads the exported interfaces of the package `toolwit:plugin`, whose functions the host calls.

use semver::Version;
use wasmparser::component_types::{ComponentEntityType, ComponentInstanceTypeId};

use super::ExportReader;
use crate::inspect::interfaces::{PLUGIN_PACKAGE, PLUGIN_VERSION, is_compatible_plugin_version};
use crate::inspect::{dynamic_export, interceptor_export};
use crate::values::dynamic_export::{DynamicExport, ToolContract};
use crate::values::interceptor_export::InterceptorExport;
use crate::values::types::{Function, FunctionKind};

impl ExportReader<'_> {
    /// Reads an exported interface of `toolwit:plugin`. Only the host calls its functions, so they are not tools.
    pub(super) fn read_plugin_export(&mut self, name: &str, interface: ComponentInstanceTypeId) {
        let export = name.strip_prefix(PLUGIN_PACKAGE).unwrap_or(name);
        let (interface_name, version) = export.split_once('@').unwrap_or((export, ""));
        let is_supported = Version::parse(version).is_ok_and(|version| is_compatible_plugin_version(&version));
        match interface_name {
            "dynamic" | "interceptor" if !is_supported => self.skip(name, unsupported_version_reason(version)),
            "dynamic" => self.read_dynamic(name, interface),
            "interceptor" => self.read_interceptor(name, interface),
            _ => self.skip(
                name,
                "no host calls this interface of `toolwit:plugin`: plugins import it",
            ),
        }
    }

    /// Reads `toolwit:plugin/dynamic`.
    fn read_dynamic(&mut self, name: &str, interface: ComponentInstanceTypeId) {
        if self.shape.dynamic.is_some() {
            return self.skip(name, "another interface of the component already lists its tools");
        }
        let first_index = self.shape.functions.len();
        match self.read_functions(name, interface, dynamic_export::FUNCTIONS) {
            [tools, call] if dynamic_export::has_interface_types(tools, call) => {
                (tools.kind, call.kind) = (FunctionKind::Dynamic, FunctionKind::Dynamic);
                let contract = ToolContract::Toolwit {
                    tools: first_index,
                    call: first_index + 1,
                };
                self.shape.dynamic = Some(DynamicExport::undiscovered(contract));
            }
            _ => self.skip_interface(name, first_index),
        }
    }

    /// Reads `toolwit:plugin/interceptor`.
    fn read_interceptor(&mut self, name: &str, interface: ComponentInstanceTypeId) {
        if self.shape.interceptor.is_some() {
            return self.skip(
                name,
                "another version of `toolwit:plugin/interceptor` is already exported",
            );
        }
        let first_index = self.shape.functions.len();
        match self.read_functions(name, interface, interceptor_export::FUNCTIONS) {
            [before, after] if interceptor_export::has_interface_types(before, after) => {
                (before.kind, after.kind) = (FunctionKind::Interceptor, FunctionKind::Interceptor);
                self.shape.interceptor = Some(InterceptorExport {
                    before: first_index,
                    after: first_index + 1,
                });
            }
            _ => self.skip_interface(name, first_index),
        }
    }

    /// Reads the functions of an interface with these names. Returns the functions that exist and could be read.
    fn read_functions(
        &mut self,
        name: &str,
        interface: ComponentInstanceTypeId,
        functions: [&str; 2],
    ) -> &mut [Function] {
        let first_index = self.shape.functions.len();
        let exports = &self.type_reader.types[interface].exports;
        for function in functions {
            if let Some(ComponentEntityType::Func(id)) = exports.get(function).map(|item| &item.ty) {
                self.read_function(Some(&name.into()), function, &self.type_reader.types[*id]);
            }
        }
        self.shape.functions.get_mut(first_index..).unwrap_or_default()
    }

    /// Skips an interface whose functions do not have the expected types. Removes its functions from the shape: those with index
    /// `first_index` or greater.
    fn skip_interface(&mut self, name: &str, first_index: usize) {
        self.shape.functions.truncate(first_index);
        let interface = name.split('@').next().unwrap_or(name).to_owned();
        self.skip(name, format!("its functions do not have the types of `{interface}`"));
    }
}

/// Returns the reason why an interface in an unsupported version is skipped, and the fix.
fn unsupported_version_reason(version: &str) -> String {
    let version = if version.is_empty() {
        "without a version"
    } else {
        version
    };
    format!(
        "it is built against `toolwit:plugin` {version}, and this host supports {PLUGIN_VERSION} and earlier 0.1 versions: \
         build the component against one of them, or use a newer host"
    )
}
