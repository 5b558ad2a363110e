//! Writes the WIT of a plugin, with its doc comments.

use std::fmt::Write;

use crate::model::{Case, DataType, Entity, Function, FunctionKind, Output, Plugin, Shape};
use crate::names::escaped;

/// The package whose types a tool may return.
const TOOLWIT_PACKAGE: &str = include_str!("../../../wit/0.1.0/plugin.wit");

/// Returns the complete WIT of a plugin.
pub(crate) fn write(plugin: &Plugin) -> String {
    let mut writer = WitWriter::default();
    let package = plugin.package.split(':').map(escaped).collect::<Vec<_>>().join(":");
    writer.write_line(&format!("package {package}@{};", plugin.version));
    writer.write_line("");
    let world = escaped(&world_name(plugin));
    match &plugin.interface {
        Some(interface) => {
            let name = escaped(&interface.name);
            writer.write_docs(&interface.docs);
            writer.open(&format!("interface {name}"));
            writer.write_use(plugin);
            plugin.types.iter().for_each(|ty| writer.write_data_type(ty));
            plugin.entities.iter().for_each(|entity| writer.write_entity(entity));
            plugin
                .functions
                .iter()
                .for_each(|function| writer.write_function(function, ""));
            writer.close();
            writer.write_line("");
            writer.open(&format!("world {world}"));
            writer.write_line(&format!("export {name};"));
            writer.close();
        }
        None => {
            writer.open(&format!("world {world}"));
            writer.write_use(plugin);
            plugin
                .functions
                .iter()
                .for_each(|function| writer.write_function(function, "export "));
            writer.close();
        }
    }
    if plugin.has_tool_result {
        writer.write_line("");
        writer.write_toolwit_package();
    }
    writer.text
}

/// Returns the name of the world. It differs from the interface's, since both are items of the package.
pub(crate) fn world_name(plugin: &Plugin) -> String {
    match (&plugin.interface, plugin.functions.first()) {
        (Some(interface), _) => format!("{}-plugin", interface.name),
        (None, Some(function)) => format!("{}-tool", function.name),
        (None, None) => "plugin".to_owned(),
    }
}

/// WIT text that is being written.
#[derive(Default)]
struct WitWriter {
    text: String,
    depth: usize,
}

impl WitWriter {
    fn write_line(&mut self, line: &str) {
        let indent = if line.is_empty() { 0 } else { self.depth * 4 };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{:indent$}{line}", "");
    }

    fn open(&mut self, head: &str) {
        self.write_line(&format!("{head} {{"));
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.write_line("}");
    }

    fn write_docs(&mut self, lines: &[String]) {
        for line in lines {
            self.write_line(format!("/// {line}").trim_end());
        }
    }

    fn write_use(&mut self, plugin: &Plugin) {
        if plugin.has_tool_result {
            self.write_line("use toolwit:plugin/types@0.1.0.{tool-result};");
        }
    }

    fn write_data_type(&mut self, ty: &DataType) {
        let name = escaped(&ty.name);
        self.write_docs(&ty.docs);
        match &ty.shape {
            Shape::Record(fields) => {
                self.open(&format!("record {name}"));
                for field in fields {
                    self.write_docs(&field.docs);
                    self.write_line(&format!("{}: {},", escaped(&field.name), field.wit.text()));
                }
            }
            Shape::Enum(cases) => {
                self.open(&format!("enum {name}"));
                cases.iter().for_each(|case| self.write_case(case));
            }
            Shape::Variant(cases) => {
                self.open(&format!("variant {name}"));
                cases.iter().for_each(|case| self.write_case(case));
            }
        }
        self.close();
    }

    fn write_case(&mut self, case: &Case) {
        self.write_docs(&case.docs);
        let name = escaped(&case.name);
        let payload: Vec<String> = case.payload.iter().map(|part| part.text()).collect();
        match payload.as_slice() {
            [] => self.write_line(&format!("{name},")),
            [one] => self.write_line(&format!("{name}({one}),")),
            several => self.write_line(&format!("{name}(tuple<{}>),", several.join(", "))),
        }
    }

    fn write_entity(&mut self, entity: &Entity) {
        self.write_docs(&entity.docs);
        self.open(&format!("resource {}", escaped(&entity.name)));
        entity
            .functions
            .iter()
            .for_each(|function| self.write_function(function, ""));
        self.close();
    }

    fn write_function(&mut self, function: &Function, prefix: &str) {
        self.write_docs(&function.docs);
        let parameters: Vec<String> = function
            .parameters
            .iter()
            .map(|parameter| format!("{}: {}", escaped(&parameter.name), parameter.wit.text()))
            .collect();
        let parameters = parameters.join(", ");
        let name = escaped(&function.name);
        let output = match &function.output {
            Output::None => String::new(),
            Output::Value(ty) => format!(" -> {}", ty.text()),
            Output::DisplayedError(None) => " -> result<_, string>".to_owned(),
            Output::DisplayedError(Some(ty)) => format!(" -> result<{}, string>", ty.text()),
        };
        let line = match function.kind {
            FunctionKind::Constructor => format!("constructor({parameters});"),
            FunctionKind::Static => format!("{name}: static func({parameters}){output};"),
            _ => format!("{prefix}{name}: func({parameters}){output};"),
        };
        self.write_line(&line);
    }

    /// Adds `toolwit:plugin/types` as a nested package.
    fn write_toolwit_package(&mut self) {
        self.open("package toolwit:plugin@0.1.0");
        types_interface().lines().for_each(|line| self.write_line(line));
        self.close();
    }
}

/// Returns the text of the interface `types`, up to its closing brace at the start of a line.
fn types_interface() -> &'static str {
    let start = TOOLWIT_PACKAGE.find("interface types {").unwrap_or_default();
    let text = &TOOLWIT_PACKAGE[start..];
    text.find("\n}").map_or(text, |end| &text[..end + 2])
}
