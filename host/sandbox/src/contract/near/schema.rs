//! The functions that describe the tool.

use wasmtime::Store;
use wasmtime::component::Func;

use crate::contract::ContractFunction;
use crate::link::host::host_state::HostState;

/// `schema` or `description`: a function without parameters that returns a text.
pub(crate) struct TextFunction {
    pub(crate) index: usize,
}

impl ContractFunction for TextFunction {
    type Returned = String;

    fn index(&self) -> usize {
        self.index
    }

    async fn run(self, store: &mut Store<HostState>, func: Func, _: u64) -> wasmtime::Result<String> {
        let (text,) = func.typed::<(), (String,)>(&*store)?.call_async(store, ()).await?;
        Ok(text)
    }
}
