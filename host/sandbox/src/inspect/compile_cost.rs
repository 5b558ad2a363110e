//! An estimate of the work to compile a function, from one pass over its code.
//!
//! The work of a compiler is linear in the size of ordinary code. But a function of a few kilobytes can take a million times
//! the work of an ordinary one. Where control flow joins, the compiler chooses a value for each variable that differs between
//! the joining paths, so that the work is the product of paths and variables. The estimate counts these products.

use std::collections::HashSet;

use wasmparser::{BlockType, CompositeInnerType, FuncType, FunctionBody, Operator, WasmModuleResources};

use super::refusal::Refusal;
use toolwit_core::limits::{COMPONENT_WORK_MAX, FUNCTION_WORK_MAX};

/// The work for a function in addition to its code: its frame, its trampolines and its metadata.
const WORK_PER_FUNCTION: u64 = 100;

/// The work for a value that a path passes on, or that a function or a call takes or returns. A value takes a kilobyte of the
/// compiler's memory, an instruction a tenth of that.
const WORK_PER_VALUE: u64 = 8;

/// The number of declared locals that take one unit of work.
const LOCALS_PER_UNIT: u64 = 4;

/// The number of pairs of a variable and a path that take one unit of work. Each variable may be live on each path.
const PAIRS_PER_UNIT: u64 = 2;

/// The estimated work to compile the functions of a component. One unit is about the work for one instruction.
#[derive(Default)]
pub(super) struct CompileCost {
    sum: u64,
}

impl CompileCost {
    /// Adds the function with this index and type. Refuses the component if a limit is exceeded.
    pub(super) fn add(
        &mut self,
        index: u32,
        type_index: u32,
        body: &FunctionBody<'_>,
        resources: &impl WasmModuleResources,
    ) -> Result<(), Refusal> {
        let mut function = FunctionCost::new(resources, type_index);
        function.read(body)?;
        if function.work > FUNCTION_WORK_MAX {
            return Err(Refusal::TooMuchWork(format!(
                "function {index} takes too much work to compile: more than {FUNCTION_WORK_MAX} units, in {} bytes of code",
                body.range().len()
            )));
        }
        self.sum = self.sum.saturating_add(function.work);
        if self.sum > COMPONENT_WORK_MAX {
            return Err(Refusal::TooMuchWork(format!(
                "its functions take too much work to compile: more than {COMPONENT_WORK_MAX} units"
            )));
        }
        Ok(())
    }
}

/// A block, loop, conditional or function body that is being read.
#[derive(Default)]
struct Frame {
    is_loop: bool,
    /// The number of jumps to its label.
    jumps: u64,
    parameters: u64,
    results: u64,
    /// The locals that the code of the block sets. Their values may differ between the paths.
    assigned: HashSet<u32>,
}

/// The work to compile a function, as far as its code has been read.
struct FunctionCost<'a, R> {
    resources: &'a R,
    frames: Vec<Frame>,
    /// The number of all jumps, plus one for the end of each block.
    paths: u64,
    work: u64,
}

impl<'a, R: WasmModuleResources> FunctionCost<'a, R> {
    fn new(resources: &'a R, type_index: u32) -> Self {
        let mut cost = Self {
            resources,
            frames: Vec::new(),
            paths: 0,
            work: WORK_PER_FUNCTION,
        };
        let (parameters, results) = cost.arity(type_index);
        cost.work += WORK_PER_VALUE * (parameters + results);
        cost.frames.push(Frame {
            parameters,
            results,
            ..Frame::default()
        });
        cost
    }

    /// Reads a body. Stops at the limit of work.
    fn read(&mut self, body: &FunctionBody<'_>) -> Result<(), Refusal> {
        for locals in body.get_locals_reader()? {
            let (count, _) = locals?;
            self.work += u64::from(count) / LOCALS_PER_UNIT;
        }
        for operator in body.get_operators_reader()? {
            self.read_operator(&operator?)?;
            if self.work > FUNCTION_WORK_MAX {
                break;
            }
        }
        Ok(())
    }

    fn read_operator(&mut self, operator: &Operator<'_>) -> Result<(), Refusal> {
        self.work += 1;
        match operator {
            Operator::Block { blockty } | Operator::If { blockty } => self.open_frame(false, *blockty),
            Operator::Loop { blockty } => self.open_frame(true, *blockty),
            Operator::Else => self.add_jump(0),
            Operator::End => self.close_frame(),
            Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                if let Some(frame) = self.frames.last_mut() {
                    frame.assigned.insert(*local_index);
                }
            }
            Operator::Br { relative_depth } | Operator::BrIf { relative_depth } => self.add_jump(*relative_depth),
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
                self.work += WORK_PER_VALUE * self.frames.first().map_or(0, |frame| frame.results);
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
        let (parameters, results) = match block {
            BlockType::Empty => (0, 0),
            BlockType::Type(_) => (0, 1),
            BlockType::FuncType(type_index) => self.arity(type_index),
        };
        self.frames.push(Frame {
            is_loop,
            parameters,
            results,
            ..Frame::default()
        });
    }

    /// Adds a jump to the label of a frame. The depth is counted from the innermost frame, which has 0.
    fn add_jump(&mut self, depth: u32) {
        let depth = usize::try_from(depth).unwrap_or(usize::MAX);
        if let Some(index) = self.frames.len().checked_sub(depth.saturating_add(1)) {
            let frame = &mut self.frames[index];
            frame.jumps += 1;
            self.paths += 1;
            let values = if frame.is_loop { frame.parameters } else { frame.results };
            self.work += 1 + WORK_PER_VALUE * values;
        }
    }

    /// Ends the innermost frame. Adds the work for the values that can differ between the paths that join at its label.
    fn close_frame(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        self.paths += 1;
        let work_per_path = WORK_PER_VALUE * (frame.parameters + frame.results + frame.assigned.len() as u64);
        // One path reaches the label without a jump: into a loop, or out of the end of a block.
        self.work = self.work.saturating_add(work_per_path.saturating_mul(frame.jumps + 1));
        let Some(outer) = self.frames.last_mut() else {
            // The end of the function.
            let pairs = self.paths.saturating_mul(frame.assigned.len() as u64);
            self.work = self.work.saturating_add(pairs / PAIRS_PER_UNIT);
            return;
        };
        let (mut inner_locals, outer_locals) = (frame.assigned, std::mem::take(&mut outer.assigned));
        if inner_locals.len() < outer_locals.len() {
            outer.assigned = outer_locals;
            outer.assigned.extend(inner_locals);
        } else {
            inner_locals.extend(outer_locals);
            outer.assigned = inner_locals;
        }
    }

    fn add_call(&mut self, type_index: u32) {
        let (parameters, results) = self.arity(type_index);
        self.work += WORK_PER_VALUE * (parameters + results);
    }

    /// Returns the numbers of parameters and results of a function type.
    fn arity(&self, type_index: u32) -> (u64, u64) {
        let count = |function: &FuncType| (function.params().len() as u64, function.results().len() as u64);
        match self.resources.sub_type_at(type_index) {
            Some(ty) => match &ty.composite_type.inner {
                CompositeInnerType::Func(function) => count(function),
                _ => (0, 0),
            },
            None => (0, 0),
        }
    }
}
