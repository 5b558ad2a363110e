//! The tools with which a conversation obtains the first instance of each resource.

use std::collections::BTreeSet;

use crate::values::types::{Function, FunctionKind, ResourceIndex, Shape, WitType};

/// Returns the entry tools of each resource, as indexes in `shape.functions`.
///
/// A call of an entry tool needs no instance of any resource. Its result contains an instance of the resource, or an instance of
/// another resource from which further calls lead to one. Only the tools with the fewest further calls are entry tools.
///
/// For example, if only a method of `customer` returns an `order`, the entry tools of `order` are those of `customer`. A resource
/// that no call returns has no entry tools.
pub(super) fn entry_tools(shape: &Shape) -> Vec<BTreeSet<usize>> {
    let functions = shape.functions.iter().enumerate();
    let functions = functions.filter(|(_, function)| !function.kind.is_for_host());
    let steps: Vec<_> = functions
        .map(|(index, function)| CallStep::of(index, function))
        .collect();
    let mut tools_by_resource = vec![BTreeSet::new(); shape.resources.len()];
    loop {
        let mut new_tools_by_resource = vec![BTreeSet::new(); tools_by_resource.len()];
        for step in &steps {
            let Some(tools) = step.entry_tools(&tools_by_resource) else {
                continue;
            };
            let is_unreached = |resource: &&usize| tools_by_resource[**resource].is_empty();
            for resource in step.returns.iter().filter(is_unreached) {
                new_tools_by_resource[*resource].extend(tools.iter().copied());
            }
        }
        if new_tools_by_resource.iter().all(BTreeSet::is_empty) {
            return tools_by_resource;
        }
        for (tools, new_tools) in tools_by_resource.iter_mut().zip(new_tools_by_resource) {
            tools.extend(new_tools);
        }
    }
}

/// A function as a step from the resources that a call needs to the resources that it returns.
struct CallStep {
    function_index: usize,
    /// The resources of which a call needs an instance.
    needs: BTreeSet<usize>,
    /// The resources of which a successful call may return instances.
    returns: BTreeSet<usize>,
}

impl CallStep {
    fn of(index: usize, function: &Function) -> Self {
        let mut needs: BTreeSet<_> = function
            .params
            .iter()
            .flat_map(|param| resource_indexes(&param.ty))
            .collect();
        if let FunctionKind::Method(ResourceIndex(receiver)) = function.kind {
            needs.insert(receiver);
        }
        let (success, _) = function.outcome_types();
        Self {
            function_index: index,
            needs,
            returns: success.map(resource_indexes).unwrap_or_default(),
        }
    }

    /// Returns the entry tools that lead to this call. `None` if no entry tools of a needed resource have been found so far.
    fn entry_tools(&self, tools_by_resource: &[BTreeSet<usize>]) -> Option<BTreeSet<usize>> {
        if self.needs.is_empty() {
            return Some(BTreeSet::from([self.function_index]));
        }
        let tool_sets: Vec<_> = self
            .needs
            .iter()
            .map(|resource| &tools_by_resource[*resource])
            .collect();
        let is_reachable = tool_sets.iter().all(|tools| !tools.is_empty());
        is_reachable.then(|| tool_sets.into_iter().flatten().copied().collect())
    }
}

/// Returns the indexes of the resources whose handles a value of a type can contain.
fn resource_indexes(ty: &WitType) -> BTreeSet<usize> {
    let mut indexes = BTreeSet::new();
    ty.visit_resources(&mut |ResourceIndex(index)| {
        indexes.insert(index);
    });
    indexes
}
