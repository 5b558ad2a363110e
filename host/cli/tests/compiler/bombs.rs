//! Components that take far more work to compile than their size suggests.

use wasm_encoder::{
    BlockType, CodeSection, ComponentBuilder, ComponentExportKind, ExportKind, ExportSection, Function,
    FunctionSection, Instruction, Module, TypeSection, ValType,
};

/// The type index of a function without parameters and results.
const PLAIN: u32 = 0;

/// The type index of a function with the results, or parameters and results, of [`module`].
const WIDE: u32 = 1;

/// Returns a component that exports its first core function, without parameters and results, as `f`.
fn component(wide: (usize, usize), functions: impl IntoIterator<Item = (u32, Function)>) -> Vec<u8> {
    let (mut types, mut signatures, mut code, mut exports) = (
        TypeSection::new(),
        FunctionSection::new(),
        CodeSection::new(),
        ExportSection::new(),
    );
    types.ty().function([], []);
    types
        .ty()
        .function(vec![ValType::I32; wide.0], vec![ValType::I32; wide.1]);
    for (signature, function) in functions {
        signatures.function(signature);
        code.function(&function);
    }
    exports.export("f", ExportKind::Func, 0);
    let mut module = Module::new();
    module
        .section(&types)
        .section(&signatures)
        .section(&exports)
        .section(&code);
    let mut component = ComponentBuilder::default();
    let module = component.core_module(None, &module);
    let instance = component.core_instantiate(None, module, []);
    let exported = component.core_alias_export(None, instance, "f", ExportKind::Func);
    let (plain, mut encoder) = component.type_function(None);
    encoder
        .params(Vec::<(&str, wasm_encoder::ComponentValType)>::new())
        .result(None);
    let lifted = component.lift_func(None, exported, plain, []);
    component.export("f", ComponentExportKind::Func, lifted, None);
    component.finish()
}

/// Returns a function with locals of type `i32`.
fn function(locals: usize, code: impl IntoIterator<Item = Instruction<'static>>) -> Function {
    let mut function = Function::new([(u32::try_from(locals).unwrap(), ValType::I32)]);
    for instruction in code {
        function.instruction(&instruction);
    }
    function.instruction(&Instruction::End);
    function
}

fn repeated<const N: usize>(
    count: usize,
    code: [Instruction<'static>; N],
) -> impl Iterator<Item = Instruction<'static>> {
    std::iter::repeat_n(code, count).flatten()
}

fn zeros(count: usize) -> impl Iterator<Item = Instruction<'static>> {
    repeated(count, [Instruction::I32Const(0)])
}

/// Changes each local.
fn changes(locals: usize) -> impl Iterator<Item = Instruction<'static>> {
    (0..u32::try_from(locals).unwrap()).flat_map(|local| {
        [
            Instruction::LocalGet(local),
            Instruction::I32Const(1),
            Instruction::I32Add,
            Instruction::LocalSet(local),
        ]
    })
}

/// Nested loops, in which each local differs in each iteration.
pub(crate) fn locals_and_loops(locals: usize, loops: usize) -> Vec<u8> {
    let opening = repeated(loops, [Instruction::Loop(BlockType::Empty)]);
    let closing = repeated(
        loops,
        [Instruction::LocalGet(0), Instruction::BrIf(0), Instruction::End],
    );
    let code = opening.chain(changes(locals)).chain(closing);
    component((0, 0), [(PLAIN, function(locals, code))])
}

/// Nested loops around code that reads locals that are never set.
pub(crate) fn unset_locals(locals: usize, loops: usize) -> Vec<u8> {
    let opening = repeated(loops, [Instruction::Loop(BlockType::Empty)]);
    let reads = (0..u32::try_from(locals).unwrap()).flat_map(|local| [Instruction::LocalGet(local), Instruction::Drop]);
    let closing = repeated(
        loops,
        [Instruction::LocalGet(0), Instruction::BrIf(0), Instruction::End],
    );
    component((0, 0), [(PLAIN, function(locals, opening.chain(reads).chain(closing)))])
}

/// Loops in a row, each with parameters.
pub(crate) fn parameters_of_blocks(parameters: usize, blocks: usize) -> Vec<u8> {
    let block = [
        Instruction::Loop(BlockType::FunctionType(WIDE)),
        Instruction::I32Const(0),
        Instruction::BrIf(0),
        Instruction::End,
    ];
    let code = zeros(parameters)
        .chain(repeated(blocks, block))
        .chain([Instruction::Return]);
    component(
        (parameters, parameters),
        [(PLAIN, function(0, code.chain([Instruction::Unreachable])))],
    )
}

/// Calls that return many values.
pub(crate) fn results_of_calls(results: usize, calls: usize) -> Vec<u8> {
    let call = [
        Instruction::Block(BlockType::Empty),
        Instruction::Call(1),
        Instruction::Br(0),
        Instruction::End,
    ];
    let many = function(0, zeros(results));
    component(
        (0, results),
        [(PLAIN, function(0, repeated(calls, call))), (WIDE, many)],
    )
}

/// Branches with many values.
pub(crate) fn values_of_branches(values: usize, branches: usize) -> Vec<u8> {
    let open = [Instruction::Block(BlockType::FunctionType(WIDE))];
    let branch = [Instruction::I32Const(0), Instruction::BrIf(0)];
    let code = open.into_iter().chain(zeros(values)).chain(repeated(branches, branch));
    let close = [Instruction::End, Instruction::Return, Instruction::Unreachable];
    component((0, values), [(PLAIN, function(0, code.chain(close)))])
}

/// Tables of branches out of two blocks whose locals differ.
pub(crate) fn targets_of_tables(locals: usize, targets: usize) -> Vec<u8> {
    let labels: Vec<u32> = [0, 1].into_iter().cycle().take(targets).collect();
    let code = repeated(2, [Instruction::Block(BlockType::Empty)])
        .chain(changes(locals))
        .chain([Instruction::LocalGet(0), Instruction::BrTable(labels.into(), 0)])
        .chain(repeated(2, [Instruction::End]));
    component((0, 0), [(PLAIN, function(locals, code))])
}

/// Blocks in a row, with each local live in all of them.
pub(crate) fn live_locals(locals: usize, blocks: usize) -> Vec<u8> {
    let block = [
        Instruction::Block(BlockType::Empty),
        Instruction::LocalGet(0),
        Instruction::BrIf(0),
        Instruction::End,
    ];
    let code = changes(locals).chain(repeated(blocks, block)).chain(changes(locals));
    component((0, 0), [(PLAIN, function(locals, code))])
}

/// Functions with many locals and hardly any code.
pub(crate) fn locals_of_functions(locals: usize, functions: usize) -> Vec<u8> {
    component((0, 0), (0..functions).map(|_| (PLAIN, function(locals, []))))
}

/// Masses of tiny functions.
pub(crate) fn functions(functions: usize) -> Vec<u8> {
    locals_of_functions(0, functions)
}

/// A function whose work is in proportion to its size.
pub(crate) fn instructions(count: usize) -> Vec<u8> {
    let code = [
        Instruction::LocalGet(0),
        Instruction::I32Const(3),
        Instruction::I32Add,
        Instruction::LocalGet(0),
        Instruction::I32Mul,
        Instruction::LocalSet(0),
    ];
    component((0, 0), [(PLAIN, function(1, repeated(count, code)))])
}
