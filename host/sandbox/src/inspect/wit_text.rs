//! Prints WIT and function signatures as text.

use std::panic::{AssertUnwindSafe, catch_unwind};

use wit_component::WitPrinter;
use wit_parser::Resolve;

use crate::values::types::{Field, Function, FunctionKind, WitType};
use toolwit_core::text::printable;

/// The maximum size of printed WIT, in bytes.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// Prints the WIT packages of a component, except those of WASI. `None` if there are no other packages, if a package cannot be
/// printed, or if the text is too long.
pub(crate) fn print(wit: &Resolve) -> Option<String> {
    let packages = wit
        .packages
        .iter()
        .filter(|(_, package)| package.name.namespace != "wasi");
    let mut printed = String::new();
    for (id, _) in packages {
        let print = || {
            let mut printer = WitPrinter::default();
            printer.print(wit, id, &[]).ok().map(|()| printer.output.to_string())
        };
        let text = catch_unwind(AssertUnwindSafe(print)).ok().flatten()?;
        if !printed.is_empty() {
            printed.push('\n');
        }
        printed.push_str(&printable(&text));
        if printed.len() > TEXT_BYTES_MAX {
            return None;
        }
    }
    (!printed.is_empty()).then_some(printed)
}

/// Returns the description of a function without docs: its signature, or a sentence if it is a program.
pub(crate) fn description_without_docs(function: &Function, name: &str, plugin: &str) -> String {
    if function.kind == FunctionKind::Command {
        return format!(
            "Runs the program `{plugin}` with arguments and standard input; returns its output and exit status."
        );
    }
    let interface = function.interface.as_deref().unwrap_or(plugin);
    let params: Vec<_> = function
        .params
        .iter()
        .map(|Field { label, ty }| format!("{}: {}", label.json, type_name(ty)))
        .collect();
    let result = function
        .result
        .as_ref()
        .map(|ty| format!(" -> {}", type_name(ty)))
        .unwrap_or_default();
    format!("`{name}({}){result}` of `{interface}`.", params.join(", "))
}

/// Returns a short name of a type. It omits fields and cases.
fn type_name(ty: &WitType) -> String {
    match ty {
        WitType::Bool => "bool".to_owned(),
        WitType::S8 => "s8".to_owned(),
        WitType::U8 => "u8".to_owned(),
        WitType::S16 => "s16".to_owned(),
        WitType::U16 => "u16".to_owned(),
        WitType::S32 => "s32".to_owned(),
        WitType::U32 => "u32".to_owned(),
        WitType::S64 => "s64".to_owned(),
        WitType::U64 => "u64".to_owned(),
        WitType::F32 => "f32".to_owned(),
        WitType::F64 => "f64".to_owned(),
        WitType::Char => "char".to_owned(),
        WitType::String => "string".to_owned(),
        WitType::Bytes => "list<u8>".to_owned(),
        WitType::List(item) => format!("list<{}>", type_name(item)),
        WitType::Tuple(items) => format!("tuple<{}>", items.iter().map(type_name).collect::<Vec<_>>().join(", ")),
        WitType::Record(_) => "record".to_owned(),
        WitType::Variant(_) => "variant".to_owned(),
        WitType::Enum(_) => "enum".to_owned(),
        WitType::Flags(_) => "flags".to_owned(),
        WitType::Option(inner) => format!("option<{}>", type_name(inner)),
        WitType::Result { ok, err } => {
            let side = |ty: &Option<Box<WitType>>| ty.as_deref().map_or_else(|| "_".to_owned(), type_name);
            format!("result<{}, {}>", side(ok), side(err))
        }
        WitType::Stream(item) => format!("stream<{}>", type_name(item)),
        WitType::Future(None) => "future".to_owned(),
        WitType::Future(Some(payload)) => format!("future<{}>", type_name(payload)),
        WitType::Own(_) | WitType::Borrow(_) => "entity".to_owned(),
    }
}
