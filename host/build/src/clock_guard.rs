//! Changes core modules that Go built, so that the exports that manage memory do not call the imported clock.
//!
//! The host calls two kinds of exports of a component for its own purposes: `cabi_realloc` allocates memory, and
//! `cabi_post_…` frees results. A component that calls an import in these exports traps. Go's memory management reads
//! the clock now and then, so a plugin would trap after hundreds of calls.
//!
//! In the changed module, these exports are *guarded exports*: each sets a flag while it runs. A *guarded clock*
//! replaces the imported clock. If the flag is set, it returns the last time that the imported clock returned.

use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, ExportKind, ExportSection, Function, FunctionSection, GlobalSection, GlobalType,
    MemArg, Module, ValType,
    reencode::{Error, Reencode, utils},
};
use wasmparser::{
    CodeSectionReader, Export, ExternalKind, FuncType, FunctionSectionReader, GlobalSectionReader, Parser, Payload,
    TypeRef,
};

/// The custom section that identifies a module that Go built. Go's linker adds it.
const GO_SECTION: &str = "go:buildid";

/// The module and the name of the import that reads a clock.
const CLOCK_IMPORT: (&str, &str) = ("wasi_snapshot_preview1", "clock_time_get");

/// The memory argument of the instructions that load or store a time: an aligned integer of 64 bits.
const TIME_MEM_ARG: MemArg = MemArg {
    offset: 0,
    align: 3,
    memory_index: 0,
};

/// The types of the added global variables, in the order of their indices: the flag that is set while a guarded export
/// runs, the last time of the real-time clock, and the last time of the monotonic clock.
const ADDED_GLOBALS: [ValType; 3] = [ValType::I32, ValType::I64, ValType::I64];

/// Adds a guarded clock and guarded exports to a core module that Go built. Returns a module of another language, or
/// without a clock, unchanged.
///
/// # Errors
/// The reason why the module cannot be parsed or encoded.
pub(super) fn guard_clock(module: Vec<u8>) -> Result<Vec<u8>, String> {
    let Some(mut guard) = ClockGuard::find(&module).map_err(|error| error.to_string())? else {
        return Ok(module);
    };
    let mut guarded = Module::new();
    let encoded = guard.parse_core_module(&mut guarded, Parser::new(0), &module);
    encoded.map_err(|error| format!("its clock import cannot be replaced: {error}"))?;
    Ok(guarded.finish())
}

/// The changes to a module. The functions and global variables of the module keep their indices. The added functions
/// follow them: first the guarded clock, then one wrapper function for each guarded export.
struct ClockGuard {
    /// The index of the imported function that reads a clock.
    clock_index: u32,
    /// The index of the type of the function that reads a clock.
    clock_type_index: u32,
    guarded_exports: Vec<GuardedExport>,
    /// The number of functions of the module, imported ones included.
    function_count: u32,
    /// The number of global variables of the module, imported ones included.
    global_count: u32,
}

/// An exported function during which the component must not call its host.
struct GuardedExport {
    name: String,
    function_index: u32,
    type_index: u32,
    parameter_count: u32,
}

impl ClockGuard {
    /// Finds the items to change. Returns `None` if the module was not built by Go, or does not import a clock.
    fn find(module: &[u8]) -> Result<Option<Self>, wasmparser::BinaryReaderError> {
        let (mut types, mut functions): (Vec<FuncType>, Vec<u32>) = (Vec::new(), Vec::new());
        let (mut clock, mut global_count, mut is_go, mut exports) = (None, 0, false, Vec::new());
        for payload in Parser::new(0).parse_all(module) {
            match payload? {
                Payload::CustomSection(section) => is_go |= section.name() == GO_SECTION,
                Payload::TypeSection(section) => {
                    types = section.into_iter_err_on_gc_types().collect::<Result<_, _>>()?;
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        let import = import?;
                        match import.ty {
                            TypeRef::Func(index) => {
                                if (import.module, import.name) == CLOCK_IMPORT {
                                    clock = Some((functions.len() as u32, index));
                                }
                                functions.push(index);
                            }
                            TypeRef::Global(_) => global_count += 1,
                            _ => {}
                        }
                    }
                }
                Payload::FunctionSection(section) => {
                    for index in section {
                        functions.push(index?);
                    }
                }
                Payload::GlobalSection(section) => global_count += section.count(),
                Payload::ExportSection(section) => exports = section.into_iter().collect::<Result<Vec<_>, _>>()?,
                _ => {}
            }
        }
        let Some((clock_index, clock_type_index)) = clock.filter(|_| is_go) else {
            return Ok(None);
        };
        let guarded_export = |export: &Export<'_>| {
            let is_guarded = export.name == "cabi_realloc" || export.name.starts_with("cabi_post_");
            let type_index = *functions.get(export.index as usize)?;
            let parameter_count = types.get(type_index as usize)?.params().len() as u32;
            (is_guarded && export.kind == ExternalKind::Func).then(|| GuardedExport {
                name: export.name.to_owned(),
                function_index: export.index,
                type_index,
                parameter_count,
            })
        };
        Ok(Some(Self {
            clock_index,
            clock_type_index,
            guarded_exports: exports.iter().filter_map(guarded_export).collect(),
            function_count: functions.len() as u32,
            global_count,
        }))
    }

    /// Returns the index of the global variable with the flag that is set while a guarded export runs.
    fn flag_index(&self) -> u32 {
        self.global_count
    }

    /// Returns the index of the global variable with the last time of the real-time clock.
    fn real_time_index(&self) -> u32 {
        self.global_count + 1
    }

    /// Returns the index of the global variable with the last time of the monotonic clock.
    fn monotonic_time_index(&self) -> u32 {
        self.global_count + 2
    }

    /// Generates the guarded clock: `(clock_id, precision, time) -> errno`. It stores the time at the address `time`.
    /// The id 0 is the real-time clock. Every other clock is treated as the monotonic clock.
    ///
    /// If the flag is set, the function stores the last time of the clock. Otherwise, it calls the imported clock and
    /// copies the time to the global variable.
    fn guarded_clock(&self) -> Function {
        let (clock_id, precision, time) = (0, 1, 2);
        let mut function = Function::new([]);
        let mut code = function.instructions();
        code.global_get(self.flag_index()).if_(BlockType::Result(ValType::I32));
        code.local_get(time).local_get(clock_id);
        code.if_(BlockType::Result(ValType::I64))
            .global_get(self.monotonic_time_index());
        code.else_().global_get(self.real_time_index()).end();
        code.i64_store(TIME_MEM_ARG).i32_const(0).else_();
        code.local_get(clock_id)
            .local_get(precision)
            .local_get(time)
            .call(self.clock_index);
        code.local_get(clock_id).if_(BlockType::Empty);
        code.local_get(time)
            .i64_load(TIME_MEM_ARG)
            .global_set(self.monotonic_time_index());
        code.else_()
            .local_get(time)
            .i64_load(TIME_MEM_ARG)
            .global_set(self.real_time_index());
        code.end().end().end();
        function
    }

    /// Generates the wrapper function of a guarded export. It sets the flag while it calls the original function.
    fn export_wrapper(&self, export: &GuardedExport) -> Function {
        let mut function = Function::new([]);
        let mut code = function.instructions();
        code.i32_const(1).global_set(self.flag_index());
        for parameter in 0..export.parameter_count {
            code.local_get(parameter);
        }
        code.call(export.function_index)
            .i32_const(0)
            .global_set(self.flag_index())
            .end();
        function
    }
}

impl Reencode for ClockGuard {
    type Error = std::convert::Infallible;

    /// Replaces each reference to the imported clock by a reference to the guarded clock.
    fn function_index(&mut self, function: u32) -> Result<u32, Error<Self::Error>> {
        Ok(if function == self.clock_index {
            self.function_count
        } else {
            function
        })
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        utils::parse_function_section(self, functions, section)?;
        functions.function(self.clock_type_index);
        for export in &self.guarded_exports {
            functions.function(export.type_index);
        }
        Ok(())
    }

    fn parse_global_section(
        &mut self,
        globals: &mut GlobalSection,
        section: GlobalSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        utils::parse_global_section(self, globals, section)?;
        for val_type in ADDED_GLOBALS {
            let initial_value = match val_type {
                ValType::I32 => ConstExpr::i32_const(0),
                _ => ConstExpr::i64_const(0),
            };
            let global = GlobalType {
                val_type,
                mutable: true,
                shared: false,
            };
            globals.global(global, &initial_value);
        }
        Ok(())
    }

    fn parse_export(&mut self, exports: &mut ExportSection, export: Export<'_>) -> Result<(), Error<Self::Error>> {
        match self
            .guarded_exports
            .iter()
            .position(|guarded| guarded.name == export.name)
        {
            Some(position) => {
                exports.export(export.name, ExportKind::Func, self.function_count + 1 + position as u32);
                Ok(())
            }
            None => utils::parse_export(self, exports, export),
        }
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        utils::parse_code_section(self, code, section)?;
        code.function(&self.guarded_clock());
        for export in &self.guarded_exports {
            code.function(&self.export_wrapper(export));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns a module that reads a clock and has a custom section of this name.
    fn module(section: &str) -> Vec<u8> {
        let text = format!(
            r#"(module
                (import "env" "other" (func $other))
                (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
                (memory (export "memory") 1)
                (global i32 (i32.const 7))
                (func $read (param i32) (result i32) (call $clock (i32.const 1) (i64.const 0) (local.get 0)))
                (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (call $read (local.get 3)))
                (func (export "cabi_post_f") (param i32) (drop (call $read (local.get 0))))
                (func (export "f") (result i32) (call $other) (call $read (i32.const 8)))
                (@custom "{section}" "id"))"#
        );
        wat::parse_str(text).unwrap()
    }

    /// Returns the function index of each export, and the indices of the functions that call the imported clock. The
    /// module must import two functions, the second of which is the clock.
    fn exports_and_clock_callers(module: &[u8]) -> (Vec<(String, u32)>, Vec<u32>) {
        let (mut exports, mut clock_callers, mut function_index) = (Vec::new(), Vec::new(), 2);
        for payload in Parser::new(0).parse_all(module) {
            match payload.unwrap() {
                Payload::ExportSection(section) => {
                    let functions = section.into_iter().map(Result::unwrap);
                    let functions = functions.filter(|export| export.kind == ExternalKind::Func);
                    exports = functions.map(|export| (export.name.to_owned(), export.index)).collect();
                }
                Payload::CodeSectionEntry(body) => {
                    let mut operators = body.get_operators_reader().unwrap().into_iter().map(Result::unwrap);
                    if operators.any(|operator| matches!(operator, wasmparser::Operator::Call { function_index: 1 })) {
                        clock_callers.push(function_index);
                    }
                    function_index += 1;
                }
                _ => {}
            }
        }
        (exports, clock_callers)
    }

    #[test]
    fn only_the_guarded_clock_calls_the_import_and_only_guarded_exports_are_replaced() {
        let guarded = guard_clock(module(GO_SECTION)).unwrap();
        wasmparser::Validator::new().validate_all(&guarded).unwrap();
        let (exports, clock_callers) = exports_and_clock_callers(&guarded);
        let expected = [("cabi_realloc", 7), ("cabi_post_f", 8), ("f", 5)];
        assert_eq!(exports, expected.map(|(name, function)| (name.to_owned(), function)));
        assert_eq!(clock_callers, [6]);
    }

    #[test]
    fn a_module_of_another_language_is_not_changed_and_text_is_refused() {
        let other = module("not-go");
        assert_eq!(guard_clock(other.clone()).unwrap(), other);
        let text = b"not a module".to_vec();
        assert!(guard_clock(text).is_err());
    }
}
