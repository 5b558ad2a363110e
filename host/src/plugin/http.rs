//! The gate between a guest and the network. Nothing passes yet.

use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

/// Refuses every request before a name is looked up or a connection made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DenyAll;

type Sent<T> = Box<dyn Future<Output = Result<T, Error>> + Send>;

impl WasiHttpHooks for DenyAll {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        _options: Option<RequestOptions>,
        _processed: Sent<()>,
    ) -> Sent<(http::Response<WasiBody>, Sent<()>)> {
        tracing::info!(host = request.uri().host(), "an HTTP request of a plugin was denied");
        Box::new(async { Err(Error::HttpRequestDenied) })
    }
}
