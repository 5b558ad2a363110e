//! The flags that bound calls.

use toolwit::limits::{ByteCount, LimitRequest, Span};

/// What the operator allows each call of a tool.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Limits of each call")]
pub(crate) struct LimitFlags {
    /// Fuel, about one unit an instruction [default: 20000000000, about 3 s of computing]
    #[arg(long, value_name = "N")]
    fuel: Option<u64>,
    /// Wall-clock time, such as 250ms, 5s or 2m [default: 30s]
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,
    /// Memory of the guest, such as 64MiB [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteCount>,
    /// The result as JSON, such as 64KiB [default: 1MiB]
    #[arg(long, value_name = "SIZE")]
    result_bytes: Option<ByteCount>,
    /// Requests that it sends [default: 20]
    #[arg(long, value_name = "N")]
    http_requests: Option<u32>,
    /// Bytes of its requests and their responses, such as 1MiB [default: 16MiB]
    #[arg(long, value_name = "SIZE")]
    http_bytes: Option<ByteCount>,
    /// Calls of tools that it makes [default: 32]
    #[arg(long, value_name = "N")]
    nested_calls: Option<u32>,
    /// Calls inside each other, the first included [default: 4; at most 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    nested_depth: Option<u32>,
}

impl LimitFlags {
    /// Returns what the flags ask for; what is not given is left at its default.
    pub(crate) fn request(&self) -> LimitRequest {
        let mut request = LimitRequest::none();
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
