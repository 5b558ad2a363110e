//! Bare wasmtime in the fastest known configuration, without Toolwit's limits.

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, ComponentExportIndex, Func, InstancePre, Linker, ResourceTable, Val};
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Store};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

mod start;

pub use start::{first_call, precompile};

struct State {
    wasi: WasiCtx,
    table: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}

/// A component ready to be instantiated, and the arguments of its function.
pub struct Raw {
    engine: Engine,
    pre: InstancePre<State>,
    function: ComponentExportIndex,
    params: Vec<Val>,
}

impl Raw {
    /// Finds the function by the id that Toolwit gives it (`plugin/interface#function`).
    pub fn new(bytes: &[u8], id: &str, arguments: &toolwit::Arguments) -> Self {
        let engine = engine();
        let component = Component::from_binary(&engine, bytes).unwrap();
        let (path, function) = id.split_once('#').unwrap();
        let interface = path
            .split_once('/')
            .map(|(_, interface)| component.get_export_index(None, interface).unwrap());
        let (item, function) = component.get_export(interface.as_ref(), function).unwrap();
        let ComponentItem::ComponentFunc(signature) = item else {
            panic!("`{id}` is a function")
        };
        let params = signature
            .params()
            .map(
                |(name, _)| match arguments.get(&toolwit::tool::text::snake_case(name)) {
                    Some(serde_json::Value::Number(number)) => {
                        Val::U32(u32::try_from(number.as_u64().unwrap()).unwrap())
                    }
                    Some(text) => Val::String(text.as_str().unwrap().to_owned()),
                    // A missing argument belongs to an optional parameter.
                    None => Val::Option(None),
                },
            )
            .collect();
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_sync(&mut linker).unwrap();
        Self {
            pre: linker.instantiate_pre(&component).unwrap(),
            engine,
            function,
            params,
        }
    }

    /// Instantiates, calls and drops.
    pub fn call(&self) {
        let mut store = store(&self.engine);
        let instance = self.pre.instantiate(&mut store).unwrap();
        let function = instance.get_func(&mut store, self.function).unwrap();
        let mut results = [Val::Bool(false)];
        function.call(&mut store, &self.params, &mut results).unwrap();
        std::hint::black_box(results);
    }
}

/// A function of a live instance that takes a text.
pub struct LiveFunction {
    store: Store<State>,
    function: Func,
    params: [Val; 1],
}

impl LiveFunction {
    /// Compiles the component, and finds the function by the id that Toolwit gives it.
    pub fn new(bytes: &[u8], id: &str, text: &str) -> Self {
        let engine = on_demand_engine();
        let component = Component::from_binary(&engine, bytes).unwrap();
        let (place, function) = id.split_once('#').unwrap();
        let (_, interface) = place.split_once('/').unwrap();
        let interface = component.get_export_index(None, interface).unwrap();
        let function = component.get_export_index(Some(&interface), function).unwrap();
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_sync(&mut linker).unwrap();
        let mut store = store(&engine);
        let instance = linker.instantiate(&mut store, &component).unwrap();
        let function = instance.get_func(&mut store, function).unwrap();
        Self {
            store,
            function,
            params: [Val::String(text.to_owned())],
        }
    }

    pub fn call(&mut self) {
        let mut results = [Val::Bool(false)];
        self.function.call(&mut self.store, &self.params, &mut results).unwrap();
        std::hint::black_box(results);
    }
}

/// John Smith as a live resource.
pub struct LiveCustomer {
    store: Store<State>,
    method: Func,
    handle: Val,
}

impl LiveCustomer {
    #[expect(
        clippy::disallowed_methods,
        reason = "this side has no host of its own; what is called needs none"
    )]
    pub fn new(bytes: &[u8]) -> Self {
        let engine = engine();
        let component = Component::from_binary(&engine, bytes).unwrap();
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_sync(&mut linker).unwrap();
        // The remaining imports, such as messages to the user, are not called by this benchmark.
        linker.define_unknown_imports_as_traps(&component).unwrap();
        let mut store = store(&engine);
        let instance = linker.instantiate(&mut store, &component).unwrap();
        let interface = "toolwit-demo:customers/customers@0.1.0";
        let interface = component.get_export_index(None, interface).unwrap();
        let mut find = |name: &str| {
            let index = component.get_export_index(Some(&interface), name).unwrap();
            instance.get_func(&mut store, index).unwrap()
        };
        let (search, method) = (find("search-customer"), find("[method]customer.get-average-spend"));
        let mut found = [Val::Bool(false)];
        search
            .call(&mut store, &[Val::String("John Smith".to_owned())], &mut found)
            .unwrap();
        let [Val::Result(Ok(Some(handle)))] = found else {
            panic!("a customer is found")
        };
        Self {
            store,
            method,
            handle: *handle,
        }
    }

    pub fn get_average_spend(&mut self) {
        let mut results = [Val::Bool(false)];
        self.method
            .call(&mut self.store, std::slice::from_ref(&self.handle), &mut results)
            .unwrap();
        std::hint::black_box(results);
    }
}

fn store(engine: &Engine) -> Store<State> {
    Store::new(
        engine,
        State {
            wasi: WasiCtx::builder().build(),
            table: ResourceTable::new(),
        },
    )
}

/// An engine without a pool, whose sizes an interpreter would exceed.
fn on_demand_engine() -> Engine {
    let mut config = Config::new();
    config.concurrency_support(false);
    Engine::new(&config).unwrap()
}

fn engine() -> Engine {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(16_000)
        .total_tables(4_000)
        .linear_memory_keep_resident(1 << 20)
        .table_keep_resident(1 << 20)
        .max_unused_warm_slots(1_000)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool))
        .concurrency_support(false);
    Engine::new(&config).unwrap()
}
