#![allow(clippy::unwrap_used, clippy::panic)]

use wasm_encoder::{
    BlockType, CodeSection, ComponentBuilder, Function, FunctionSection, Instruction, Module, TypeSection, ValType,
};

use crate::inspect::check::check;

/// Returns a component with one function.
fn component(locals: u32, code: impl IntoIterator<Item = Instruction<'static>>) -> Vec<u8> {
    let (mut types, mut functions, mut bodies) = (TypeSection::new(), FunctionSection::new(), CodeSection::new());
    types.ty().function([], []);
    functions.function(0);
    let mut function = Function::new([(locals, ValType::I32)]);
    for instruction in code {
        function.instruction(&instruction);
    }
    function.instruction(&Instruction::End);
    bodies.function(&function);
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&bodies);
    let mut component = ComponentBuilder::default();
    component.core_module(None, &module);
    component.finish()
}

fn read(local: u32) -> [Instruction<'static>; 2] {
    [Instruction::LocalGet(local), Instruction::Drop]
}

fn set(local: u32) -> [Instruction<'static>; 2] {
    [Instruction::I32Const(1), Instruction::LocalSet(local)]
}

/// A block that can be left in its middle.
fn block(local: u32) -> [Instruction<'static>; 4] {
    [
        Instruction::Block(BlockType::Empty),
        Instruction::LocalGet(local),
        Instruction::BrIf(0),
        Instruction::End,
    ]
}

/// Nested loops around code that reads locals that are never set.
fn unset_locals(locals: u32, loops: usize) -> Vec<u8> {
    let opening = std::iter::repeat_n(Instruction::Loop(BlockType::Empty), loops);
    let closing = [Instruction::LocalGet(0), Instruction::BrIf(0), Instruction::End];
    let code = opening.chain((0..locals).flat_map(read));
    component(locals, code.chain(std::iter::repeat_n(closing, loops).flatten()))
}

/// Locals that are set once, and read after many blocks.
fn live_temporaries(locals: u32, blocks: usize) -> Vec<u8> {
    let code = (0..locals)
        .flat_map(set)
        .chain(std::iter::repeat_n(block(0), blocks).flatten());
    component(locals, code.chain((0..locals).flat_map(read)))
}

/// Code without optimisation: each of many locals is set, read and never used again, between blocks.
fn unoptimised(locals: u32) -> Vec<u8> {
    let code = (0..locals).flat_map(|local| set(local).into_iter().chain(read(local)).chain(block(local)));
    component(locals, code)
}

/// A component, and the memory that the compiler of the engine needed for it.
struct Measured {
    name: &'static str,
    component: Vec<u8>,
    memory_mib: u64,
    /// Whether the component is compiled without a compiler process.
    is_compiled_in_process: bool,
}

#[test]
fn the_estimate_is_in_proportion_to_the_memory_of_the_compiler() {
    let table = [
        Measured {
            name: "live temporaries",
            component: live_temporaries(1_000, 1_000),
            memory_mib: 105,
            is_compiled_in_process: true,
        },
        Measured {
            name: "few locals that are never set",
            component: unset_locals(300, 300),
            memory_mib: 43,
            is_compiled_in_process: true,
        },
        Measured {
            name: "locals that are never set",
            component: unset_locals(600, 600),
            memory_mib: 92,
            is_compiled_in_process: true,
        },
        Measured {
            name: "code without optimisation",
            component: unoptimised(5_000),
            memory_mib: 113,
            is_compiled_in_process: true,
        },
        Measured {
            name: "a huge function without optimisation",
            component: unoptimised(20_000),
            memory_mib: 1_553,
            is_compiled_in_process: false,
        },
    ];
    for measured in table {
        let work = check(&measured.component).unwrap().compile_work;
        let bytes_per_unit = (measured.memory_mib << 20) / work.sum;
        // The work of an ordinary instruction takes about a hundred bytes.
        assert!(
            (30..=150).contains(&bytes_per_unit),
            "{}: {bytes_per_unit} bytes for each of {work:?}",
            measured.name
        );
        let is_within = work.require_within_process().is_ok();
        assert_eq!(
            is_within, measured.is_compiled_in_process,
            "{}: {work:?}",
            measured.name
        );
    }
}
