//! Reading the streams and futures in the result of an async function, within the limit of a result.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::oneshot;
use wasmtime::component::{
    Accessor, ComponentType, Func, FutureAny, FutureConsumer, Lift, Source, StreamAny, StreamConsumer, StreamResult,
    Val,
};
use wasmtime::{AsContextMut, Store, StoreContextMut};

use crate::link::host::host_state::HostState;
use crate::values::types::WitType;

/// The least that an item takes in a result as JSON, in bytes: a digit and a comma.
const ITEM_BYTES: u64 = 2;

/// The streams and futures of a result exceed its limit.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the streams of the result have more than {0} bytes")]
pub(super) struct StreamsTooLarge(pub(super) u64);

/// Calls an export, and replaces the streams and futures in its result by what they deliver.
///
/// # Errors
/// Those of the guest, and [`StreamsTooLarge`].
pub(super) async fn call_and_collect(
    store: &mut Store<HostState>,
    func: Func,
    params: &[Val],
    results: &mut [Val],
    ty: &WitType,
    bytes_max: u64,
) -> wasmtime::Result<()> {
    let collected = store
        .run_concurrent(async |accessor| {
            func.call_concurrent(accessor, params, results).await?;
            match results.first_mut() {
                Some(result) => collect(accessor, ty, result, bytes_max).await,
                None => Ok(()),
            }
        })
        .await;
    collected?
}

/// Reads all streams and futures of a value at the same time: the guest decides in which order it writes them.
async fn collect(
    accessor: &Accessor<HostState>,
    ty: &WitType,
    value: &mut Val,
    bytes_max: u64,
) -> wasmtime::Result<()> {
    let budget = Budget::new(bytes_max);
    let mut pending = Vec::new();
    accessor.with(|mut store| begin(&mut store.as_context_mut(), ty, value, &budget, &mut pending))?;
    for (place, delivered) in pending {
        let delivered = delivered.await;
        if budget.is_exceeded() {
            return Err(StreamsTooLarge(bytes_max).into());
        }
        *place = delivered.map_err(|_| wasmtime::Error::msg("a future of the result was dropped without a value"))?;
    }
    Ok(())
}

type Pending<'a> = (&'a mut Val, oneshot::Receiver<Val>);

/// Begins to read each stream and future in a value.
fn begin<'a>(
    store: &mut StoreContextMut<'_, HostState>,
    ty: &WitType,
    value: &'a mut Val,
    budget: &Budget,
    pending: &mut Vec<Pending<'a>>,
) -> wasmtime::Result<()> {
    if !ty.holds_streams() {
        return Ok(());
    }
    match (ty, value) {
        (WitType::Stream(item), value) => {
            let Val::Stream(stream) = std::mem::replace(value, Val::Bool(false)) else {
                return Ok(());
            };
            pending.push((value, read_stream(store, item, stream, budget)?));
        }
        (WitType::Future(payload), value) => {
            let Val::Future(future) = std::mem::replace(value, Val::Bool(false)) else {
                return Ok(());
            };
            pending.push((value, read_future(store, payload.as_deref(), future, budget)?));
        }
        (WitType::Tuple(types), Val::Tuple(values)) => {
            for (ty, value) in types.iter().zip(values) {
                begin(store, ty, value, budget, pending)?;
            }
        }
        (WitType::Record(fields), Val::Record(values)) => {
            for (field, (_, value)) in fields.iter().zip(values) {
                begin(store, &field.ty, value, budget, pending)?;
            }
        }
        (WitType::Option(ty), Val::Option(Some(value)))
        | (WitType::Result { ok: Some(ty), .. }, Val::Result(Ok(Some(value))))
        | (WitType::Result { err: Some(ty), .. }, Val::Result(Err(Some(value)))) => {
            begin(store, ty, value, budget, pending)?;
        }
        _ => {}
    }
    Ok(())
}

/// Reads a stream or future whose items have a type without parts.
macro_rules! by_type {
    ($read:ident, $ty:expr, $store:expr, $source:expr, $budget:expr) => {
        match $ty {
            WitType::Bool => $read::<bool>($store, $source, $budget, Val::Bool),
            WitType::S8 => $read::<i8>($store, $source, $budget, Val::S8),
            WitType::U8 => $read::<u8>($store, $source, $budget, Val::U8),
            WitType::S16 => $read::<i16>($store, $source, $budget, Val::S16),
            WitType::U16 => $read::<u16>($store, $source, $budget, Val::U16),
            WitType::S32 => $read::<i32>($store, $source, $budget, Val::S32),
            WitType::U32 => $read::<u32>($store, $source, $budget, Val::U32),
            WitType::S64 => $read::<i64>($store, $source, $budget, Val::S64),
            WitType::U64 => $read::<u64>($store, $source, $budget, Val::U64),
            WitType::F32 => $read::<f32>($store, $source, $budget, Val::Float32),
            WitType::F64 => $read::<f64>($store, $source, $budget, Val::Float64),
            WitType::Char => $read::<char>($store, $source, $budget, Val::Char),
            WitType::String => $read::<String>($store, $source, $budget, Val::String),
            _ => Err(wasmtime::Error::msg("the type of a stream is not supported")),
        }
    };
}

fn read_stream(
    store: &mut StoreContextMut<'_, HostState>,
    item: &WitType,
    stream: StreamAny,
    budget: &Budget,
) -> wasmtime::Result<oneshot::Receiver<Val>> {
    if *item == WitType::U8 {
        return pipe(store, stream, budget, |bytes: Vec<u8>| {
            Val::String(text_or_data_url(bytes))
        });
    }
    by_type!(items, item, store, stream, budget)
}

fn read_future(
    store: &mut StoreContextMut<'_, HostState>,
    payload: Option<&WitType>,
    future: FutureAny,
    budget: &Budget,
) -> wasmtime::Result<oneshot::Receiver<Val>> {
    let Some(payload) = payload else {
        return one::<()>(store, future, budget, |()| Val::Tuple(Vec::new()));
    };
    let no_text = |text: Option<&WitType>| text.is_none();
    match payload {
        WitType::Result { ok, err } => {
            let text = |text: String| Some(Box::new(Val::String(text)));
            match (no_text(ok.as_deref()), no_text(err.as_deref())) {
                (true, true) => one::<Result<(), ()>>(store, future, budget, |result| {
                    Val::Result(result.map(|()| None).map_err(|()| None))
                }),
                (true, false) => one::<Result<(), String>>(store, future, budget, move |result| {
                    Val::Result(result.map(|()| None).map_err(text))
                }),
                (false, true) => one::<Result<String, ()>>(store, future, budget, move |result| {
                    Val::Result(result.map(text).map_err(|()| None))
                }),
                (false, false) => one::<Result<String, String>>(store, future, budget, move |result| {
                    Val::Result(result.map(text).map_err(text))
                }),
            }
        }
        payload => by_type!(one, payload, store, future, budget),
    }
}

fn items<T: Item>(
    store: &mut StoreContextMut<'_, HostState>,
    stream: StreamAny,
    budget: &Budget,
    val: fn(T) -> Val,
) -> wasmtime::Result<oneshot::Receiver<Val>> {
    pipe(store, stream, budget, move |items: Vec<T>| {
        Val::List(items.into_iter().map(val).collect())
    })
}

/// Reads the items of a stream until its guest closes it.
fn pipe<T: Item>(
    store: &mut StoreContextMut<'_, HostState>,
    stream: StreamAny,
    budget: &Budget,
    convert: impl FnOnce(Vec<T>) -> Val + Send + Unpin + 'static,
) -> wasmtime::Result<oneshot::Receiver<Val>> {
    let (sender, receiver) = oneshot::channel();
    let collector = Collector {
        items: Vec::new(),
        budget: budget.clone(),
        deliver: Some((sender, convert)),
    };
    stream.try_into_stream_reader::<T>()?.pipe(store, collector)?;
    Ok(receiver)
}

/// Reads the value of a future.
fn one<T: Item>(
    store: &mut StoreContextMut<'_, HostState>,
    future: FutureAny,
    budget: &Budget,
    convert: impl FnOnce(T) -> Val + Send + Unpin + 'static,
) -> wasmtime::Result<oneshot::Receiver<Val>> {
    let (sender, receiver) = oneshot::channel();
    let awaited = Awaited {
        budget: budget.clone(),
        deliver: Some((sender, convert)),
        item: std::marker::PhantomData::<fn() -> T>,
    };
    future.try_into_future_reader::<T>()?.pipe(store, awaited)?;
    Ok(receiver)
}

/// A type that a stream or future delivers.
trait Item: ComponentType + Lift + Send + Sync + Unpin + 'static {
    /// Returns the size of the value in a result, in bytes.
    fn bytes(&self) -> u64 {
        ITEM_BYTES
    }
}

macro_rules! plain_items {
    ($($ty:ty),*) => { $(impl Item for $ty {})* };
}

plain_items!((), bool, i8, i16, u16, i32, u32, i64, u64, f32, f64, char, Result<(), ()>);

/// An item of a text, or of a data URL.
impl Item for u8 {
    fn bytes(&self) -> u64 {
        1
    }
}

impl Item for String {
    fn bytes(&self) -> u64 {
        ITEM_BYTES + self.len() as u64
    }
}

impl Item for Result<(), String> {
    fn bytes(&self) -> u64 {
        self.as_ref().map_or_else(Item::bytes, |()| ITEM_BYTES)
    }
}

impl Item for Result<String, ()> {
    fn bytes(&self) -> u64 {
        self.as_ref().map_or(ITEM_BYTES, Item::bytes)
    }
}

impl Item for Result<String, String> {
    fn bytes(&self) -> u64 {
        self.as_ref().map_or_else(Item::bytes, Item::bytes)
    }
}

/// The bytes that all streams and futures of a result may still deliver.
#[derive(Clone)]
struct Budget {
    used: Arc<AtomicU64>,
    max: u64,
}

impl Budget {
    fn new(max: u64) -> Self {
        Self {
            used: Arc::default(),
            max,
        }
    }

    /// Takes bytes. Returns whether the limit is not exceeded.
    fn take(&self, bytes: u64) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) <= self.max
    }

    fn is_exceeded(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.max
    }
}

/// Collects the items of a stream, and delivers them when it ends.
struct Collector<T, F: FnOnce(Vec<T>) -> Val> {
    items: Vec<T>,
    budget: Budget,
    deliver: Option<(oneshot::Sender<Val>, F)>,
}

impl<T, F: FnOnce(Vec<T>) -> Val> Drop for Collector<T, F> {
    fn drop(&mut self) {
        if let Some((sender, convert)) = self.deliver.take() {
            // The call may have ended.
            let _ = sender.send(convert(std::mem::take(&mut self.items)));
        }
    }
}

/// The number of items that are read at once.
const ITEMS_PER_READ: usize = 16 << 10;

impl<T: Item, F: FnOnce(Vec<T>) -> Val + Send + Unpin + 'static> StreamConsumer<HostState> for Collector<T, F> {
    type Item = T;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        mut store: StoreContextMut<HostState>,
        mut source: Source<'_, T>,
        _finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let count = source.remaining(&mut store).min(ITEMS_PER_READ);
        if count == 0 {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let mut read = Vec::with_capacity(count);
        source.read(&mut store, &mut read)?;
        let bytes = read.iter().map(Item::bytes).sum();
        if !self.budget.take(bytes) {
            self.items = Vec::new();
            return Poll::Ready(Ok(StreamResult::Dropped));
        }
        self.items.append(&mut read);
        Poll::Ready(Ok(StreamResult::Completed))
    }
}

/// Delivers the value of a future.
struct Awaited<T, F> {
    budget: Budget,
    deliver: Option<(oneshot::Sender<Val>, F)>,
    item: std::marker::PhantomData<fn() -> T>,
}

impl<T: Item, F: FnOnce(T) -> Val + Send + Unpin + 'static> FutureConsumer<HostState> for Awaited<T, F> {
    type Item = T;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        store: StoreContextMut<HostState>,
        mut source: Source<'_, T>,
        _finish: bool,
    ) -> Poll<wasmtime::Result<()>> {
        let mut read: Option<T> = None;
        source.read(store, &mut read)?;
        if let (Some(value), Some((sender, convert))) = (read, self.deliver.take()) {
            self.budget.take(value.bytes());
            // The call may have ended.
            let _ = sender.send(convert(value));
        }
        Poll::Ready(Ok(()))
    }
}

/// Converts bytes to text, or to a data URL if they are not UTF-8.
fn text_or_data_url(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let encoded = STANDARD.encode(error.into_bytes());
        format!("data:application/octet-stream;base64,{encoded}")
    })
}
