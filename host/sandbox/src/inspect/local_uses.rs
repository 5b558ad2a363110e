//! The parts of a function in which its locals are live.
//!
//! A local that is set once, before it is read, is live from there to its last use. Compilers without optimisation make thousands of
//! such locals, of which few are live at any point. A local that is never set is live from the start of the function.

/// The uses of the locals of one function. The value is reused for the next function, so that the work for a function depends on its
/// code and not on the number of its locals.
#[derive(Default)]
pub(super) struct LocalUses {
    /// The uses, by local. Locals that are not in `used` have the default value.
    uses: Vec<LocalUse>,
    /// The locals that the function reads or sets, each once.
    used: Vec<u32>,
    /// The open loops, the innermost last.
    loops: Vec<OpenLoop>,
    /// The number of basic blocks of the code so far.
    block_count: u32,
}

#[derive(Clone, Copy, Default)]
struct LocalUse {
    is_used: bool,
    /// The number of instructions that set the local, at most 2.
    set_count: u8,
    /// Whether the local was read before it was set.
    is_read_first: bool,
    /// The position at which the local is set, or zero if it is read first.
    start: u32,
    /// The position of its last use.
    end: u32,
    /// The number of basic blocks before its last use.
    block_count: u32,
    /// The start of the loop in whose end the local is live; zero for none.
    loop_start: u32,
}

struct OpenLoop {
    start: u32,
    /// The locals that the loop reads and that are set before it. They are live until its end.
    carried: Vec<u32>,
}

impl LocalUses {
    /// Begins a function.
    pub(super) fn start_function(&mut self) {
        for local in self.used.drain(..) {
            self.uses[local as usize] = LocalUse::default();
        }
        self.loops.clear();
        self.block_count = 0;
    }

    /// Records that the code begins basic blocks.
    pub(super) fn add_blocks(&mut self, count: u32) {
        self.block_count = self.block_count.saturating_add(count);
    }

    pub(super) fn open_loop(&mut self, position: u32) {
        self.loops.push(OpenLoop {
            start: position,
            carried: Vec::new(),
        });
    }

    pub(super) fn close_loop(&mut self, position: u32) {
        let Some(closed) = self.loops.pop() else { return };
        for local in closed.carried {
            let local = &mut self.uses[local as usize];
            local.end = local.end.max(position);
        }
    }

    /// Records that the code reads a local.
    pub(super) fn read(&mut self, local: u32, position: u32) {
        let entry = self.entry(local);
        entry.is_read_first |= entry.set_count == 0;
        entry.end = position;
        let start = entry.start;
        let index = self.loops.partition_point(|open| open.start <= start);
        let Some(outermost) = self.loops.get_mut(index) else {
            return;
        };
        let entry = &mut self.uses[local as usize];
        if entry.loop_start != outermost.start {
            entry.loop_start = outermost.start;
            outermost.carried.push(local);
        }
    }

    /// Records that the code sets a local. Returns whether the value of the local may differ between the paths to a later point: it was
    /// read or set before.
    pub(super) fn set(&mut self, local: u32, position: u32) -> bool {
        let entry = self.entry(local);
        let may_differ = entry.is_read_first || entry.set_count > 0;
        if !may_differ {
            entry.start = position;
            entry.end = position;
        }
        entry.set_count = (entry.set_count + 1).min(2);
        may_differ
    }

    /// Returns the number of pairs of a path and a local, of those that are set at most once, that is live where the path arrives.
    /// `joins` has the positions at which paths arrive, with the number of paths.
    pub(super) fn live_pairs(&self, joins: &mut [(u32, u64)]) -> u64 {
        let live = || {
            let used = self.used.iter().map(|local| &self.uses[*local as usize]);
            used.filter(|local| local.set_count == 0 || local.set_count == 1 && !local.is_read_first)
        };
        let mut starts: Vec<_> = live().map(|local| local.start).collect();
        let mut ends: Vec<_> = live().map(|local| local.end).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        joins.sort_unstable();
        let (mut started, mut ended, mut pairs) = (0, 0, 0_u64);
        for (position, paths) in joins {
            while starts.get(started).is_some_and(|start| start < position) {
                started += 1;
            }
            while ends.get(ended).is_some_and(|end| end < position) {
                ended += 1;
            }
            pairs = pairs.saturating_add(paths.saturating_mul(started.saturating_sub(ended) as u64));
        }
        pairs
    }

    /// Returns the number of pairs of a local and a basic block before its last use. The compiler has a table of the blocks for each
    /// local.
    pub(super) fn table_entries(&self) -> u64 {
        let used = self.used.iter().map(|local| &self.uses[*local as usize]);
        used.fold(0, |sum: u64, local| sum.saturating_add(local.block_count.into()))
    }

    fn entry(&mut self, local: u32) -> &mut LocalUse {
        let index = local as usize;
        if index >= self.uses.len() {
            self.uses.resize(index + 1, LocalUse::default());
        }
        let entry = &mut self.uses[index];
        entry.block_count = self.block_count;
        if !entry.is_used {
            entry.is_used = true;
            self.used.push(local);
        }
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_locals_that_are_live_at_a_join_count() {
        let mut uses = LocalUses::default();
        for _ in 0..2 {
            uses.start_function();
            // A temporary between the positions 10 and 12, a local that is never set, and one that is set again.
            assert!(!uses.set(0, 10));
            uses.read(0, 12);
            uses.read(1, 20);
            assert!(!uses.set(2, 5));
            assert!(uses.set(2, 6));
            uses.read(2, 30);
            assert_eq!(uses.live_pairs(&mut [(11, 3), (15, 2), (25, 7)]), 3 * 2 + 2);
            uses.add_blocks(5);
            uses.read(0, 40);
            assert_eq!(uses.table_entries(), 5);
        }
    }

    #[test]
    fn a_local_that_a_loop_reads_is_live_in_all_of_the_loop() {
        let mut uses = LocalUses::default();
        uses.set(0, 1);
        uses.open_loop(5);
        uses.open_loop(6);
        uses.read(0, 7);
        uses.close_loop(20);
        uses.close_loop(30);
        // A local that is set inside is not live in the next iteration.
        uses.open_loop(40);
        uses.set(1, 41);
        uses.read(1, 42);
        uses.close_loop(50);
        assert_eq!(uses.live_pairs(&mut [(29, 1), (40, 1), (45, 1)]), 1);
    }

    #[test]
    fn a_local_that_is_read_before_it_is_set_may_differ() {
        let mut uses = LocalUses::default();
        uses.read(0, 1);
        assert!(uses.set(0, 2));
        assert_eq!(uses.live_pairs(&mut [(1, 1)]), 0, "it counts with its blocks");
    }
}
