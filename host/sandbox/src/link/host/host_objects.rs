//! Estimates the memory and the files of the host that the resources of a guest hold.
//!
//! Every resource counts as [`OBJECT_BYTES`]. The content of a resource counts too, if this module lists the resource's type. A
//! buffer counts with its capacity, because it can fill up without another call of the guest.

use std::any::Any;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};
use wasmtime_wasi_http::FieldMap;
use wasmtime_wasi_http::p2::bindings::http::types::{Method, Scheme};
use wasmtime_wasi_http::p2::body::{HostFutureTrailers, HostIncomingBody};
use wasmtime_wasi_http::p2::types::{
    HostFutureIncomingResponse, HostIncomingResponse, HostOutgoingRequest, HostOutgoingResponse,
};
use wasmtime_wasi_http::p3;

use super::files::DirectoryListing;
use super::http::{BODY_CHUNK_BYTES, BODY_CHUNKS};
use super::keyvalue::Bucket;
use toolwit_core::limits::{GUEST_PATH_BYTES_MAX, HEADER_BYTES_MAX};

/// The memory of a resource without its content: its entries in the tables of the host and of wasmtime.
const OBJECT_BYTES: usize = 1 << 10;

/// The memory of a header field without its name and value. The map of fields doubles its allocation when it grows.
const FIELD_BYTES: usize = 256;

/// The maximum memory of a header list: four times [`HEADER_BYTES_MAX`], because wasmtime counts less for a short field than the
/// field uses.
const FIELDS_BYTES_MAX: usize = 4 * HEADER_BYTES_MAX;

/// The memory of a stream: wasmtime reads and writes files in pieces of this size.
const STREAM_BYTES: usize = 64 << 10;

/// The memory of the body of a message that the guest writes: its trailers and its queued chunks. wasmtime queues one chunk more
/// than [`BODY_CHUNKS`].
const OUTGOING_BODY_BYTES: usize = (BODY_CHUNKS + 1) * BODY_CHUNK_BYTES + FIELDS_BYTES_MAX;

/// The memory of a sent request and its response, until the response is dropped: the fields and the body of the request, the
/// fields and one chunk of the response, and the buffers of the connection and of TLS.
const EXCHANGE_BYTES: usize = OUTGOING_BODY_BYTES + 2 * FIELDS_BYTES_MAX + (256 << 10);

/// The memory of one object of wasmtime's concurrency runtime: a task, an end of a stream or future, or a set of them. A stream has
/// three objects, which together count for more than the 64 KiB that it buffers.
const CONCURRENT_OBJECT_BYTES: u64 = 24 << 10;

/// The maximum memory of one resource in addition to the data that the guest passes with its calls.
pub(super) const LARGEST_OBJECT_BYTES: u64 = EXCHANGE_BYTES as u64;

/// Returns the memory that all resources hold, in bytes.
pub(super) fn held_bytes(resources: &mut ResourceTable) -> u64 {
    let sizes = resources
        .iter_mut()
        .map(|object| OBJECT_BYTES.saturating_add(content_bytes(object)));
    sizes.fold(0, |sum, bytes| sum.saturating_add(bytes as u64))
}

/// Returns the maximum memory of the tasks, streams and futures of a store, in bytes. `objects` is their number.
pub(super) fn concurrent_bytes(objects: usize) -> u64 {
    (objects as u64).saturating_mul(CONCURRENT_OBJECT_BYTES)
}

/// The number of objects of wasmtime's concurrency runtime for one stream, which can hold a file.
const CONCURRENT_OBJECTS_PER_STREAM: usize = 3;

/// Returns the number of files and connections that all resources hold. Streams count as one each, because a stream keeps its file
/// open.
pub(super) fn held_files(resources: &mut ResourceTable) -> u64 {
    let is_file = |object: &dyn Any| {
        object.is::<Descriptor>()
            || object.is::<DirectoryListing>()
            || object.is::<DynInputStream>()
            || object.is::<DynOutputStream>()
            || object.is::<HostIncomingBody>()
            || object
                .downcast_ref::<HostIncomingResponse>()
                .is_some_and(|response| response.body.is_some())
            || object
                .downcast_ref::<HostFutureIncomingResponse>()
                .is_some_and(|response| !matches!(response, HostFutureIncomingResponse::Consumed))
    };
    resources.iter_mut().filter(|object| is_file(&**object)).count() as u64
}

/// Returns the maximum number of files and connections that the streams of a store hold. `objects` is the number of its tasks,
/// streams and futures.
pub(super) fn concurrent_files(objects: usize) -> u64 {
    objects.div_ceil(CONCURRENT_OBJECTS_PER_STREAM) as u64
}

/// Returns the memory of a resource's content, which counts in addition to [`OBJECT_BYTES`].
fn content_bytes(object: &dyn Any) -> usize {
    if object.is::<DynInputStream>() || object.is::<DynOutputStream>() {
        STREAM_BYTES
    } else if object.is::<Descriptor>() {
        GUEST_PATH_BYTES_MAX
    } else if object.is::<DirectoryListing>() {
        DirectoryListing::MEMORY_BYTES
    } else if let Some(bucket) = object.downcast_ref::<Bucket>() {
        bucket.bytes()
    } else {
        message_bytes(object)
    }
}

/// Returns the memory of the content of a resource of `wasi:http`. Returns zero for any other resource.
fn message_bytes(object: &dyn Any) -> usize {
    let bytes_if = |is_present: bool, bytes: usize| if is_present { bytes } else { 0 };
    if let Some(fields) = object.downcast_ref::<FieldMap>() {
        fields_bytes(fields)
    } else if let Some(request) = object.downcast_ref::<HostOutgoingRequest>() {
        request_bytes(request) + bytes_if(request.body.is_some(), OUTGOING_BODY_BYTES)
    } else if let Some(response) = object.downcast_ref::<HostOutgoingResponse>() {
        fields_bytes(&response.headers) + bytes_if(response.body.is_some(), OUTGOING_BODY_BYTES)
    } else if let Some(response) = object.downcast_ref::<HostFutureIncomingResponse>() {
        bytes_if(
            !matches!(response, HostFutureIncomingResponse::Consumed),
            EXCHANGE_BYTES,
        )
    } else if let Some(response) = object.downcast_ref::<HostIncomingResponse>() {
        fields_bytes(&response.headers) + bytes_if(response.body.is_some(), EXCHANGE_BYTES)
    } else if let Some(trailers) = object.downcast_ref::<HostFutureTrailers>() {
        bytes_if(matches!(trailers, HostFutureTrailers::Waiting(_)), EXCHANGE_BYTES)
    } else if let Some(request) = object.downcast_ref::<p3::Request>() {
        fields_bytes(&request.headers) + EXCHANGE_BYTES
    } else if let Some(response) = object.downcast_ref::<p3::Response>() {
        fields_bytes(&response.headers) + EXCHANGE_BYTES
    } else {
        bytes_if(object.is::<HostIncomingBody>(), EXCHANGE_BYTES)
    }
}

fn request_bytes(request: &HostOutgoingRequest) -> usize {
    let text_bytes = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
    let method_bytes = match &request.method {
        Method::Other(method) => method.capacity(),
        _ => 0,
    };
    let scheme_bytes = match &request.scheme {
        Some(Scheme::Other(scheme)) => scheme.capacity(),
        _ => 0,
    };
    let target_bytes = text_bytes(&request.path_with_query) + text_bytes(&request.authority);
    fields_bytes(&request.headers) + target_bytes + method_bytes + scheme_bytes
}

fn fields_bytes(fields: &FieldMap) -> usize {
    let field_bytes =
        |(name, value): (&http::HeaderName, &http::HeaderValue)| FIELD_BYTES + name.as_str().len() + value.len();
    fields.iter().map(field_bytes).sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: K1
    #[test]
    fn resources_count_with_the_memory_that_they_can_hold() {
        let mut resources = ResourceTable::new();
        assert_eq!(held_bytes(&mut resources), 0);
        let mut fields = FieldMap::new_mutable(HEADER_BYTES_MAX);
        let value = http::HeaderValue::from_bytes(&[b'x'; 1000]).unwrap();
        fields.append_raw(http::HeaderName::from_static("name"), value).unwrap();
        let list = resources.push(fields.clone()).unwrap();
        let list_bytes = held_bytes(&mut resources);
        assert!((2000..4000).contains(&list_bytes), "{list_bytes}");
        let request = HostOutgoingRequest {
            method: Method::Other("x".repeat(100_000)),
            scheme: Some(Scheme::Other("x".repeat(100_000))),
            authority: Some("x".repeat(100_000)),
            path_with_query: Some("x".repeat(100_000)),
            headers: fields,
            body: None,
        };
        resources.push(request).unwrap();
        assert!(held_bytes(&mut resources) > 2 * list_bytes + 400_000 - OBJECT_BYTES as u64);
        resources.push(HostFutureIncomingResponse::Consumed).unwrap();
        let bytes_before = held_bytes(&mut resources);
        let stream: DynInputStream = Box::new(wasmtime_wasi::p2::pipe::ClosedInputStream);
        let stream = resources.push(stream).unwrap();
        assert_eq!(
            held_bytes(&mut resources),
            bytes_before + (STREAM_BYTES + OBJECT_BYTES) as u64
        );
        resources.delete(stream).unwrap();
        resources.delete(list).unwrap();
        assert_eq!(
            held_bytes(&mut resources),
            bytes_before - list_bytes,
            "a dropped resource does not count"
        );
    }
}
