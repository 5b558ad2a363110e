//! Options that limit calls.

use toolwit::limits::{ByteCount, LimitRequest, Span};

/// The operator's limits for each tool call.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Limits of each call")]
pub(crate) struct LimitFlags {
    /// Maximum fuel, about one unit per instruction [default: 20000000000, about 3 s of CPU time]
    #[arg(long, value_name = "N")]
    fuel: Option<u64>,
    /// Maximum wall-clock time, such as 250ms, 5s or 2m [default: 30s]
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,
    /// Maximum guest memory, such as 64MiB [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteCount>,
    /// Maximum size of the JSON result, such as 64KiB [default: 1MiB]
    #[arg(long, value_name = "SIZE")]
    result_bytes: Option<ByteCount>,
    /// Maximum number of HTTP requests [default: 20]
    #[arg(long, value_name = "N")]
    http_requests: Option<u32>,
    /// Maximum size of all HTTP requests and responses, such as 1MiB [default: 16MiB]
    #[arg(long, value_name = "SIZE")]
    http_bytes: Option<ByteCount>,
    /// Maximum number of nested tool calls [default: 32]
    #[arg(long, value_name = "N")]
    nested_calls: Option<u32>,
    /// Maximum nesting depth of tool calls, including the first [default: 4; at most 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    nested_depth: Option<u32>,
}

impl LimitFlags {
    /// Returns the limits to request. Options that are not given keep their defaults.
    pub(crate) fn request(&self) -> LimitRequest {
        let mut request = LimitRequest::default();
        request.fuel_max = self.fuel;
        request.wall_max = self.timeout.map(|Span(time)| time);
        request.memory_bytes_max = self.memory.map(|ByteCount(bytes)| bytes);
        request.result_bytes_max = self.result_bytes.map(|ByteCount(bytes)| bytes);
        request.http_requests_max = self.http_requests;
        request.http_bytes_max = self.http_bytes.map(|ByteCount(bytes)| bytes);
        request.nested_calls_max = self.nested_calls;
        request.nested_depth_max = self.nested_depth;
        request
    }
}
