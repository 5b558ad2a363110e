//! Writes the WIT of a plugin, with its doc comments.

use std::fmt::Write;

use crate::model::{Case, DataType, Entity, Function, FunctionKind, Output, Plugin, Shape};
use crate::names::escaped;

/// The package whose types a tool may return.
const TOOLWIT_PACKAGE: &str = include_str!("../../../wit/0.1.0/plugin.wit");

/// Returns the complete WIT of a plugin.
pub(crate) fn write(plugin: &Plugin) -> String {
    let mut text = Text::default();
    let package = plugin.package.split(':').map(escaped).collect::<Vec<_>>().join(":");
    text.line(&format!("package {package}@{};", plugin.version));
    text.line("");
    let world = escaped(&world_name(plugin));
    match &plugin.interface {
        Some(interface) => {
            let name = escaped(&interface.name);
            text.docs(&interface.docs);
            text.open(&format!("interface {name}"));
            text.uses(plugin);
            plugin.types.iter().for_each(|ty| text.data_type(ty));
            plugin.entities.iter().for_each(|entity| text.entity(entity));
            plugin.functions.iter().for_each(|function| text.function(function, ""));
            text.close();
            text.line("");
            text.open(&format!("world {world}"));
            text.line(&format!("export {name};"));
            text.close();
        }
        None => {
            text.open(&format!("world {world}"));
            text.uses(plugin);
            plugin
                .functions
                .iter()
                .for_each(|function| text.function(function, "export "));
            text.close();
        }
    }
    if plugin.has_tool_result {
        text.line("");
        text.toolwit_package();
    }
    text.text
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
struct Text {
    text: String,
    depth: usize,
}

impl Text {
    fn line(&mut self, line: &str) {
        let indent = if line.is_empty() { 0 } else { self.depth * 4 };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{:indent$}{line}", "");
    }

    fn open(&mut self, head: &str) {
        self.line(&format!("{head} {{"));
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.line("}");
    }

    fn docs(&mut self, lines: &[String]) {
        for line in lines {
            self.line(format!("/// {line}").trim_end());
        }
    }

    fn uses(&mut self, plugin: &Plugin) {
        if plugin.has_tool_result {
            self.line("use toolwit:plugin/types@0.1.0.{tool-result};");
        }
    }

    fn data_type(&mut self, ty: &DataType) {
        let name = escaped(&ty.name);
        self.docs(&ty.docs);
        match &ty.shape {
            Shape::Record(fields) => {
                self.open(&format!("record {name}"));
                for field in fields {
                    self.docs(&field.docs);
                    self.line(&format!("{}: {},", escaped(&field.name), field.wit.text()));
                }
            }
            Shape::Enum(cases) => {
                self.open(&format!("enum {name}"));
                cases.iter().for_each(|case| self.case(case));
            }
            Shape::Variant(cases) => {
                self.open(&format!("variant {name}"));
                cases.iter().for_each(|case| self.case(case));
            }
        }
        self.close();
    }

    fn case(&mut self, case: &Case) {
        self.docs(&case.docs);
        let name = escaped(&case.name);
        let payload: Vec<String> = case.payload.iter().map(|part| part.text()).collect();
        match payload.as_slice() {
            [] => self.line(&format!("{name},")),
            [one] => self.line(&format!("{name}({one}),")),
            several => self.line(&format!("{name}(tuple<{}>),", several.join(", "))),
        }
    }

    fn entity(&mut self, entity: &Entity) {
        self.docs(&entity.docs);
        self.open(&format!("resource {}", escaped(&entity.name)));
        entity.functions.iter().for_each(|function| self.function(function, ""));
        self.close();
    }

    fn function(&mut self, function: &Function, prefix: &str) {
        self.docs(&function.docs);
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
        self.line(&line);
    }

    /// Adds `toolwit:plugin/types` as a nested package.
    fn toolwit_package(&mut self) {
        self.open("package toolwit:plugin@0.1.0");
        types_interface().lines().for_each(|line| self.line(line));
        self.close();
    }
}

/// Returns the text of the interface `types`, up to its closing brace at the start of a line.
fn types_interface() -> &'static str {
    let start = TOOLWIT_PACKAGE.find("interface types {").unwrap_or_default();
    let text = &TOOLWIT_PACKAGE[start..];
    text.find("\n}").map_or(text, |end| &text[..end + 2])
}
