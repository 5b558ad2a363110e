//! An estimate of the work to compile a function, from one pass over its code.
//!
//! For ordinary code, the work of a compiler is linear in the size of the code. But some functions of a few kilobytes take a million
//! times the work of an ordinary function. At each point where paths of control flow join, the compiler handles each variable whose
//! value differs between the paths, once for each path. So the work is the product of the numbers of paths and variables. The
//! estimate adds up these products. It assumes that a local that is set repeatedly is live on each path, and determines where a local
//! is live that is set at most once.

use std::collections::HashSet;

use wasmparser::{BlockType, Catch, CompositeInnerType, FuncType, FunctionBody, Operator, WasmModuleResources};

use super::local_uses::LocalUses;
use super::refusal::Refusal;
use toolwit_core::limits::{COMPONENT_WORK_MAX, FUNCTION_WORK_MAX};
use toolwit_core::{Error, ErrorKind, Phase};

/// The work for each function in addition to its code: its stack frame, its trampolines and its metadata.
const WORK_PER_FUNCTION: u64 = 100;

/// The work for each value that a path passes to a join, and for each parameter and result of a function or a call. The compiler
/// uses about a kilobyte of memory for such a value, and a tenth of that for an instruction.
const WORK_PER_VALUE: u64 = 8;

/// The number of declared locals that take one unit of work.
const LOCALS_PER_UNIT: u64 = 4;

/// The number of pairs of a variable and a path on which it is live that take one unit of work.
const PAIRS_PER_UNIT: u64 = 2;

/// The work for a pair of a variable and a path into a loop in which the variable is live, although it is set at most once. The compiler
/// does not know the value in the loop before it has read all of the loop.
const WORK_PER_LOOP_PAIR: u64 = 3;

/// The number of pairs of a variable and a basic block before its last use that take one unit of work. The compiler has a table with
/// four bytes for each.
const TABLE_ENTRIES_PER_UNIT: u64 = 25;

/// The factor by which the work may exceed [`FUNCTION_WORK_MAX`] and [`COMPONENT_WORK_MAX`] if the component is compiled in a process
/// with limits, which then decides. No process compiles more within its limits.
const PROCESS_FACTOR: u64 = 16;

/// The estimated work to compile a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct CompileWork {
    /// The work for the function that takes most.
    function_max: u64,
    /// The work for all functions.
    sum: u64,
}

impl CompileWork {
    /// Refuses a component that takes too much work to compile it in this process, in which nothing limits the compiler.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`].
    pub(crate) fn require_within_process(&self) -> Result<(), Error> {
        let (work, max) = if self.function_max > FUNCTION_WORK_MAX {
            (self.function_max, FUNCTION_WORK_MAX)
        } else {
            (self.sum, COMPONENT_WORK_MAX)
        };
        if work <= max {
            return Ok(());
        }
        let message = format!("it takes too much work to compile: {work} units, and {max} without a compiler process");
        Err(Error::new(ErrorKind::Unsupported, Phase::Load, message)
            .with_suggestion("compile it in a process with limits, with `Compiler::Process`"))
    }
}

/// The estimated work to compile the functions of a component. One unit is about the work for one instruction.
#[derive(Default)]
pub(super) struct CompileCost {
    work: CompileWork,
    locals: LocalUses,
}

impl CompileCost {
    /// Returns the work for all functions so far.
    pub(super) fn work(&self) -> CompileWork {
        self.work
    }

    /// Adds the work for the function with this index and type. Refuses the component if the work for the function or for the
    /// component is too much even for a compiler process.
    pub(super) fn add(
        &mut self,
        index: u32,
        type_index: u32,
        body: &FunctionBody<'_>,
        resources: &impl WasmModuleResources,
    ) -> Result<(), Refusal> {
        let mut function = FunctionCost::new(resources, type_index, &mut self.locals);
        function.read(body)?;
        let work = function.work;
        if work > PROCESS_FACTOR * FUNCTION_WORK_MAX {
            return Err(Refusal::TooMuchWork(format!(
                "function {index} takes too much work to compile: more than {} units, in {} bytes of code",
                PROCESS_FACTOR * FUNCTION_WORK_MAX,
                body.range().len()
            )));
        }
        self.work.function_max = self.work.function_max.max(work);
        self.work.sum = self.work.sum.saturating_add(work);
        if self.work.sum > PROCESS_FACTOR * COMPONENT_WORK_MAX {
            return Err(Refusal::TooMuchWork(format!(
                "its functions take too much work to compile: more than {} units",
                PROCESS_FACTOR * COMPONENT_WORK_MAX
            )));
        }
        Ok(())
    }
}

/// A block, loop, conditional or function body that is being read.
#[derive(Default)]
struct ControlFrame {
    is_loop: bool,
    /// The position of the instruction that opens the frame.
    start: u32,
    /// The number of jumps to the label of the frame.
    jump_count: u64,
    parameter_count: u64,
    result_count: u64,
    /// The indexes of the locals that the code of the frame sets, after they were read or set before. Their values may differ between
    /// the paths.
    assigned_locals: HashSet<u32>,
    /// The frames, by index, to whose labels an exception inside of this frame jumps.
    handlers: Vec<usize>,
}

/// The work to compile the part of a function that has been read.
struct FunctionCost<'a, R> {
    resources: &'a R,
    locals: &'a mut LocalUses,
    /// The position of the current instruction.
    position: u32,
    /// The positions at which paths join, except for those into loops, with the number of paths.
    joins: Vec<(u32, u64)>,
    /// The positions of loops, with the number of paths into them.
    loops: Vec<(u32, u64)>,
    /// The frames that are open, the innermost last.
    frames: Vec<ControlFrame>,
    /// The indexes of the open frames with handlers, the innermost last.
    handler_frames: Vec<usize>,
    /// The number of all jumps, plus one for the end of each frame.
    path_count: u64,
    work: u64,
}

impl<'a, R: WasmModuleResources> FunctionCost<'a, R> {
    fn new(resources: &'a R, type_index: u32, locals: &'a mut LocalUses) -> Self {
        locals.start_function();
        let mut cost = Self {
            resources,
            locals,
            position: 0,
            joins: Vec::new(),
            loops: Vec::new(),
            frames: Vec::new(),
            handler_frames: Vec::new(),
            path_count: 0,
            work: WORK_PER_FUNCTION,
        };
        let (parameter_count, result_count) = cost.arity(type_index);
        cost.work += WORK_PER_VALUE * (parameter_count + result_count);
        cost.frames.push(ControlFrame {
            parameter_count,
            result_count,
            ..ControlFrame::default()
        });
        cost
    }

    /// Adds the work for a function body. Stops when the work is too much.
    fn read(&mut self, body: &FunctionBody<'_>) -> Result<(), Refusal> {
        for locals in body.get_locals_reader()? {
            let (count, _) = locals?;
            self.work += u64::from(count) / LOCALS_PER_UNIT;
        }
        for operator in body.get_operators_reader()? {
            self.position = self.position.saturating_add(1);
            self.read_operator(&operator?)?;
            if self.work > PROCESS_FACTOR * FUNCTION_WORK_MAX {
                return Ok(());
            }
        }
        let pair_count = self.locals.live_pairs(&mut self.joins);
        let loop_pair_count = self.locals.live_pairs(&mut self.loops);
        let work = (pair_count / PAIRS_PER_UNIT)
            .saturating_add(loop_pair_count.saturating_mul(WORK_PER_LOOP_PAIR))
            .saturating_add(self.locals.table_entries() / TABLE_ENTRIES_PER_UNIT);
        self.work = self.work.saturating_add(work);
        Ok(())
    }

    fn read_operator(&mut self, operator: &Operator<'_>) -> Result<(), Refusal> {
        self.work += 1;
        match operator {
            Operator::Block { blockty } => self.open_frame(false, *blockty),
            Operator::If { blockty } => {
                self.locals.add_blocks(2);
                self.open_frame(false, *blockty);
            }
            Operator::Loop { blockty } => self.open_frame(true, *blockty),
            Operator::TryTable { try_table } => {
                let base = self.frames.len();
                let labels = try_table.catches.iter().map(|catch| match catch {
                    Catch::One { label, .. }
                    | Catch::OneRef { label, .. }
                    | Catch::All { label }
                    | Catch::AllRef { label } => *label,
                });
                let handlers: Vec<_> = labels
                    .filter_map(|label| base.checked_sub(usize::try_from(label).ok()?.checked_add(1)?))
                    .collect();
                if !handlers.is_empty() {
                    self.handler_frames.push(base);
                }
                self.open_frame(false, try_table.ty);
                if let Some(frame) = self.frames.last_mut() {
                    frame.handlers = handlers;
                }
            }
            Operator::Throw { .. } | Operator::ThrowRef => self.add_throw(),
            Operator::Else => self.add_jump(0),
            Operator::End => self.close_frame(),
            Operator::LocalGet { local_index } => self.locals.read(*local_index, self.position),
            Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                if self.locals.set(*local_index, self.position)
                    && let Some(frame) = self.frames.last_mut()
                {
                    frame.assigned_locals.insert(*local_index);
                }
            }
            Operator::Br { relative_depth } | Operator::BrIf { relative_depth } => {
                self.locals.add_blocks(1);
                self.add_jump(*relative_depth);
            }
            Operator::BrOnNull { relative_depth } | Operator::BrOnNonNull { relative_depth } => {
                self.add_jump(*relative_depth);
            }
            Operator::BrTable { targets } => {
                self.add_jump(targets.default());
                for target in targets.targets() {
                    self.add_jump(target?);
                }
            }
            Operator::Return => {
                self.work += WORK_PER_VALUE * self.frames.first().map_or(0, |frame| frame.result_count);
            }
            Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
                let type_index = self.resources.type_index_of_function(*function_index);
                self.add_call(type_index.unwrap_or_default());
            }
            Operator::CallIndirect { type_index, .. }
            | Operator::ReturnCallIndirect { type_index, .. }
            | Operator::CallRef { type_index }
            | Operator::ReturnCallRef { type_index } => self.add_call(*type_index),
            _ => {}
        }
        Ok(())
    }

    fn open_frame(&mut self, is_loop: bool, block: BlockType) {
        let (parameter_count, result_count) = match block {
            BlockType::Empty => (0, 0),
            BlockType::Type(_) => (0, 1),
            BlockType::FuncType(type_index) => self.arity(type_index),
        };
        self.locals.add_blocks(1);
        if is_loop {
            self.locals.open_loop(self.position);
        }
        self.frames.push(ControlFrame {
            is_loop,
            start: self.position,
            parameter_count,
            result_count,
            ..ControlFrame::default()
        });
    }

    /// Adds a jump to the label of the frame at this depth. The innermost frame has the depth 0.
    fn add_jump(&mut self, depth: u32) {
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        if let Some(index) = self.frames.len().checked_sub(depth.saturating_add(1)) {
            let frame = &mut self.frames[index];
            frame.jump_count += 1;
            self.path_count += 1;
            let value_count = if frame.is_loop {
                frame.parameter_count
            } else {
                frame.result_count
            };
            self.work += 1 + WORK_PER_VALUE * value_count;
        }
    }

    /// Ends the innermost frame. Adds the work for the values that can differ between the paths that join at its label.
    fn close_frame(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        self.handler_frames.pop_if(|index| *index == self.frames.len());
        self.path_count += 1;
        if frame.is_loop {
            self.locals.close_loop(self.position);
        }
        let path_count = frame.jump_count + 1;
        if frame.is_loop {
            self.loops.push((frame.start, path_count));
        } else {
            self.joins.push((self.position, path_count));
        }
        let local_count = frame.assigned_locals.len() as u64;
        let work_per_path = WORK_PER_VALUE * (frame.parameter_count + frame.result_count + local_count);
        // One path reaches the label without a jump: into a loop, or out of the end of a block.
        self.work = self
            .work
            .saturating_add(work_per_path.saturating_mul(frame.jump_count + 1));
        let Some(outer) = self.frames.last_mut() else {
            // The closed frame is the function body.
            let pair_count = self.path_count.saturating_mul(local_count);
            self.work = self.work.saturating_add(pair_count / PAIRS_PER_UNIT);
            return;
        };
        // Adds the smaller set to the larger one, because the sets of nested frames can be large.
        let (mut inner_locals, outer_locals) = (frame.assigned_locals, std::mem::take(&mut outer.assigned_locals));
        if inner_locals.len() < outer_locals.len() {
            outer.assigned_locals = outer_locals;
            outer.assigned_locals.extend(inner_locals);
        } else {
            inner_locals.extend(outer_locals);
            outer.assigned_locals = inner_locals;
        }
    }

    fn add_call(&mut self, type_index: u32) {
        let (parameter_count, result_count) = self.arity(type_index);
        self.work += WORK_PER_VALUE * (parameter_count + result_count);
        self.add_throw();
    }

    /// Adds the jumps of an exception to each handler around it.
    fn add_throw(&mut self) {
        // Only frames with handlers: each step adds work, so that the limit of work ends a function that has too many.
        for position in 0..self.handler_frames.len() {
            let index = self.handler_frames[position];
            for handler in std::mem::take(&mut self.frames[index].handlers) {
                if let Some(target) = self.frames.get_mut(handler) {
                    target.jump_count += 1;
                    self.path_count += 1;
                    self.work += 1 + WORK_PER_VALUE * target.result_count;
                }
                self.frames[index].handlers.push(handler);
            }
        }
    }

    /// Returns the numbers of parameters and results of a function type.
    fn arity(&self, type_index: u32) -> (u64, u64) {
        let counts = |function: &FuncType| (function.params().len() as u64, function.results().len() as u64);
        match self.resources.sub_type_at(type_index) {
            Some(ty) => match &ty.composite_type.inner {
                CompositeInnerType::Func(function) => counts(function),
                _ => (0, 0),
            },
            None => (0, 0),
        }
    }
}

#[cfg(test)]
mod tests;
