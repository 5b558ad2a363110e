//! Reading the streams and futures in the result of a call.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::oneshot;
use wasmtime::component::{Accessor, FutureAny, FutureConsumer, Source, StreamAny, StreamConsumer, StreamResult, Val};
use wasmtime::{AsContextMut as _, StoreContextMut};

use super::item::{Item, with_future_payload, with_scalar};
use crate::link::host::host_state::HostState;
use crate::link::limits::streams_too_large::StreamsTooLarge;
use crate::values::types::{DATA_URL_START, WitType};

/// Replaces each handle of a stream or future in a value by the content that the guest writes to it. Reads all streams and futures
/// concurrently, because the guest may write them in any order.
///
/// # Errors
/// [`StreamsTooLarge`], and an error for a future that the guest drops without a value.
pub(super) async fn replace_handles(
    accessor: &Accessor<HostState>,
    ty: &WitType,
    value: &mut Val,
    bytes_max: u64,
) -> wasmtime::Result<()> {
    let budget = ByteBudget::new(bytes_max);
    let mut pending_values = Vec::new();
    accessor.with(|mut store| start_reading(&mut store.as_context_mut(), ty, value, &budget, &mut pending_values))?;
    for (slot, receiver) in pending_values {
        let received = receiver.await;
        if budget.is_exceeded() {
            return Err(StreamsTooLarge(bytes_max).into());
        }
        *slot = received.map_err(|_| wasmtime::Error::msg("a future of the result was dropped without a value"))?;
    }
    Ok(())
}

/// The position of a stream or future in the result, and the receiver of the value that will replace it.
type PendingValue<'a> = (&'a mut Val, oneshot::Receiver<Val>);

/// Starts to read each stream and future in a value. Lists and variants are not searched, because inspection rejects functions
/// whose results have streams or futures in lists or variants.
fn start_reading<'a>(
    store: &mut StoreContextMut<'_, HostState>,
    ty: &WitType,
    value: &'a mut Val,
    budget: &ByteBudget,
    pending_values: &mut Vec<PendingValue<'a>>,
) -> wasmtime::Result<()> {
    if !ty.holds_streams() {
        return Ok(());
    }
    match (ty, value) {
        // `Val::Bool` is a placeholder until `replace_handles` writes the content.
        (WitType::Stream(item), value) => {
            let Val::Stream(stream) = std::mem::replace(value, Val::Bool(false)) else {
                return Ok(());
            };
            pending_values.push((value, read_stream(store, item, stream, budget)?));
        }
        (WitType::Future(payload), value) => {
            let Val::Future(future) = std::mem::replace(value, Val::Bool(false)) else {
                return Ok(());
            };
            pending_values.push((value, read_future(store, payload.as_deref(), future, budget)?));
        }
        (WitType::Tuple(types), Val::Tuple(values)) => {
            for (ty, value) in types.iter().zip(values) {
                start_reading(store, ty, value, budget, pending_values)?;
            }
        }
        (WitType::Record(fields), Val::Record(values)) => {
            for (field, (_, value)) in fields.iter().zip(values) {
                start_reading(store, &field.ty, value, budget, pending_values)?;
            }
        }
        (WitType::Option(ty), Val::Option(Some(value)))
        | (WitType::Result { ok: Some(ty), .. }, Val::Result(Ok(Some(value))))
        | (WitType::Result { err: Some(ty), .. }, Val::Result(Err(Some(value)))) => {
            start_reading(store, ty, value, budget, pending_values)?;
        }
        _ => {}
    }
    Ok(())
}

fn read_stream(
    store: &mut StoreContextMut<'_, HostState>,
    item: &WitType,
    stream: StreamAny,
    budget: &ByteBudget,
) -> wasmtime::Result<oneshot::Receiver<Val>> {
    if *item == WitType::U8 {
        return read_items(store, stream, budget, |bytes: Vec<u8>| {
            Val::String(text_or_data_url(bytes))
        });
    }
    with_scalar!(item, read_list(store, stream, budget))
}

fn read_future(
    store: &mut StoreContextMut<'_, HostState>,
    payload: Option<&WitType>,
    future: FutureAny,
    budget: &ByteBudget,
) -> wasmtime::Result<oneshot::Receiver<Val>> {
    with_future_payload!(payload, read_value(store, future, budget))
}

fn read_list<T: Item>(
    store: &mut StoreContextMut<'_, HostState>,
    stream: StreamAny,
    budget: &ByteBudget,
) -> wasmtime::Result<oneshot::Receiver<Val>> {
    read_items(store, stream, budget, |items: Vec<T>| {
        Val::List(items.into_iter().map(T::into_val).collect())
    })
}

/// Reads the items of a stream until the guest closes it or the budget is exceeded, and converts them to one value.
fn read_items<T: Item>(
    store: &mut StoreContextMut<'_, HostState>,
    stream: StreamAny,
    budget: &ByteBudget,
    convert: impl FnOnce(Vec<T>) -> Val + Send + Unpin + 'static,
) -> wasmtime::Result<oneshot::Receiver<Val>> {
    let (sender, receiver) = oneshot::channel();
    let collector = StreamCollector {
        items: Vec::new(),
        budget: budget.clone(),
        destination: Some((sender, convert)),
    };
    stream.try_into_stream_reader::<T>()?.pipe(store, collector)?;
    Ok(receiver)
}

fn read_value<T: Item>(
    store: &mut StoreContextMut<'_, HostState>,
    future: FutureAny,
    budget: &ByteBudget,
) -> wasmtime::Result<oneshot::Receiver<Val>> {
    let (sender, receiver) = oneshot::channel();
    let future_receiver = FutureReceiver {
        budget: budget.clone(),
        sender: Some(sender),
        item_type: PhantomData::<fn() -> T>,
    };
    future.try_into_future_reader::<T>()?.pipe(store, future_receiver)?;
    Ok(receiver)
}

/// The limit on the bytes of all streams and futures of a result, and the bytes counted so far. Clones share the count.
#[derive(Clone)]
struct ByteBudget {
    used: Arc<AtomicU64>,
    max: u64,
}

impl ByteBudget {
    fn new(max: u64) -> Self {
        Self {
            used: Arc::default(),
            max,
        }
    }

    /// Counts bytes. Returns whether all counted bytes are within the limit.
    fn count(&self, bytes: u64) -> bool {
        let used_before = self.used.fetch_add(bytes, Ordering::Relaxed);
        used_before.saturating_add(bytes) <= self.max
    }

    fn is_exceeded(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.max
    }
}

/// Collects the items of a stream. At the end of the stream, wasmtime drops the collector. Its destructor converts the items to
/// one value and sends the value.
struct StreamCollector<T, F: FnOnce(Vec<T>) -> Val> {
    items: Vec<T>,
    budget: ByteBudget,
    /// The channel for the value, and the conversion of the items to the value. `None` after the value was sent.
    destination: Option<(oneshot::Sender<Val>, F)>,
}

impl<T, F: FnOnce(Vec<T>) -> Val> Drop for StreamCollector<T, F> {
    fn drop(&mut self) {
        if let Some((sender, convert)) = self.destination.take() {
            // Fails only if the call has ended. The value is then no longer needed.
            let _ = sender.send(convert(std::mem::take(&mut self.items)));
        }
    }
}

/// The maximum number of items that are read at once.
const ITEMS_PER_READ_MAX: usize = 16 << 10;

impl<T: Item, F: FnOnce(Vec<T>) -> Val + Send + Unpin + 'static> StreamConsumer<HostState> for StreamCollector<T, F> {
    type Item = T;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        mut store: StoreContextMut<HostState>,
        mut source: Source<'_, T>,
        _finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let count = source.remaining(&mut store).min(ITEMS_PER_READ_MAX);
        // A guest can start a write without items.
        if count == 0 {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let mut new_items = Vec::with_capacity(count);
        source.read(&mut store, &mut new_items)?;
        let bytes = new_items.iter().map(Item::bytes_min).sum();
        if !self.budget.count(bytes) {
            self.items = Vec::new();
            return Poll::Ready(Ok(StreamResult::Dropped));
        }
        self.items.append(&mut new_items);
        Poll::Ready(Ok(StreamResult::Completed))
    }
}

/// Receives the value of a future from the guest, and sends it to [`replace_handles`].
struct FutureReceiver<T> {
    budget: ByteBudget,
    sender: Option<oneshot::Sender<Val>>,
    item_type: PhantomData<fn() -> T>,
}

impl<T: Item> FutureConsumer<HostState> for FutureReceiver<T> {
    type Item = T;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        store: StoreContextMut<HostState>,
        mut source: Source<'_, T>,
        _finish: bool,
    ) -> Poll<wasmtime::Result<()>> {
        let mut received: Option<T> = None;
        source.read(store, &mut received)?;
        if let (Some(value), Some(sender)) = (received, self.sender.take()) {
            self.budget.count(value.bytes_min());
            // Fails only if the call has ended. The value is then no longer needed.
            let _ = sender.send(value.into_val());
        }
        Poll::Ready(Ok(()))
    }
}

/// Converts bytes to text, or to a data URL if they are not UTF-8.
fn text_or_data_url(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let encoded = STANDARD.encode(error.into_bytes());
        format!("{DATA_URL_START}{encoded}")
    })
}
