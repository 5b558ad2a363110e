//! Reads the exported interfaces through which components of other hosts list and call their tools.

use std::sync::Arc;

use wasmparser::component_types::{ComponentEntityType, ComponentInstanceTypeId};

use super::ExportReader;
use crate::inspect::contract_export::ContractInterface;
use crate::inspect::signature::signature;
use crate::values::dynamic_export::{DynamicExport, ToolContract};
use crate::values::types::{Function, FunctionKind};

impl ExportReader<'_> {
    /// Reads an exported interface that another host defines. Only the host calls its functions, so they are not tools.
    pub(super) fn read_contract_export(
        &mut self,
        name: &str,
        interface: ComponentInstanceTypeId,
        contract: ContractInterface,
    ) {
        if let ContractInterface::Unsupported(reason) = contract {
            return self.skip(name, reason);
        }
        if self.shape.dynamic.is_some() {
            return self.skip(name, "another interface of the component already lists its tools");
        }
        let exports = &self.type_reader.types[interface].exports;
        let signatures: Option<Vec<String>> = contract
            .function_names()
            .iter()
            .map(|function| match &exports.get(*function)?.ty {
                ComponentEntityType::Func(id) => signature(self.type_reader.types, &self.type_reader.types[*id]),
                _ => None,
            })
            .collect();
        let first_index = self.shape.functions.len();
        let implemented = signatures.and_then(|signatures| contract.implemented_contract(&signatures, first_index));
        let Some(foreign_contract) = implemented else {
            let interface = name.split('@').next().unwrap_or(name);
            return self.skip(name, format!("its functions do not have the types of `{interface}`"));
        };
        let interface_name: Arc<str> = name.into();
        let functions = contract.function_names().iter();
        let functions = functions.map(|function| contract_function(&interface_name, function));
        self.shape.functions.extend(functions);
        self.shape.dynamic = Some(DynamicExport::undiscovered(ToolContract::Foreign(foreign_contract)));
    }
}

/// Creates the [`Function`] for a function of a contract. Its types are omitted, because the module `contract` defines them as
/// Rust types.
fn contract_function(interface: &Arc<str>, export: &str) -> Function {
    Function {
        interface: Some(interface.clone()),
        export: export.to_owned(),
        kind: FunctionKind::Dynamic,
        name: export.to_owned(),
        params: Vec::new(),
        result: None,
        returns_tool_result: false,
        docs: None,
        effect: None,
        input_schema: Arc::default(),
        output_schema: None,
    }
}
