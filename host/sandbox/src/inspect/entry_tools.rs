//! The tools with which a conversation obtains the first instance of each resource.

use std::collections::BTreeSet;

use crate::values::types::{Function, FunctionKind, ResourceIndex, Shape, WitType};

/// Returns the entry tools of each resource, as indexes in `shape.functions`. These are the tools that return an instance of
/// the resource and need no other instance. If no tool does, they are the tools from which the fewest further calls lead to an
/// instance of the resource.
///
/// For example, an order that only a method of a customer returns has the entry tools of the customer. A resource that
/// no call returns has none.
pub(super) fn entry_tools(shape: &Shape) -> Vec<BTreeSet<usize>> {
    let functions = shape.functions.iter().enumerate();
    let functions = functions.filter(|(_, function)| !function.kind.is_for_host());
    let steps: Vec<_> = functions
        .map(|(index, function)| CallStep::of(index, function))
        .collect();
    let mut entries = vec![BTreeSet::new(); shape.resources.len()];
    loop {
        let mut new_entries = vec![BTreeSet::new(); entries.len()];
        for step in &steps {
            let Some(tools) = step.entry_tools(&entries) else {
                continue;
            };
            let unreached = step.returns.iter().filter(|resource| entries[**resource].is_empty());
            unreached.for_each(|resource| new_entries[*resource].extend(tools.iter().copied()));
        }
        if new_entries.iter().all(BTreeSet::is_empty) {
            return entries;
        }
        for (entries, new_entries) in entries.iter_mut().zip(new_entries) {
            entries.extend(new_entries);
        }
    }
}

/// A function as a step from the resources that a call needs to the resources that it returns.
struct CallStep {
    function: usize,
    /// The resources of which a call needs an instance.
    needs: BTreeSet<usize>,
    /// The resources of which a successful call may return instances.
    returns: BTreeSet<usize>,
}

impl CallStep {
    fn of(index: usize, function: &Function) -> Self {
        let mut needs: BTreeSet<_> = function.params.iter().flat_map(|param| resources(&param.ty)).collect();
        if let FunctionKind::Method(ResourceIndex(receiver)) = function.kind {
            needs.insert(receiver);
        }
        let (success, _) = function.outcome();
        Self {
            function: index,
            needs,
            returns: success.map(resources).unwrap_or_default(),
        }
    }

    /// Returns the entry tools that lead to this call, or `None` if a resource that it needs has no entry tools so far.
    fn entry_tools(&self, entries: &[BTreeSet<usize>]) -> Option<BTreeSet<usize>> {
        if self.needs.is_empty() {
            return Some(BTreeSet::from([self.function]));
        }
        let entries_of_needs: Vec<_> = self.needs.iter().map(|resource| &entries[*resource]).collect();
        let is_reachable = entries_of_needs.iter().all(|tools| !tools.is_empty());
        is_reachable.then(|| entries_of_needs.into_iter().flatten().copied().collect())
    }
}

/// Returns the resources whose handles a value of a type can contain.
fn resources(ty: &WitType) -> BTreeSet<usize> {
    let mut resources = BTreeSet::new();
    ty.visit_resources(&mut |ResourceIndex(index)| {
        resources.insert(index);
    });
    resources
}
