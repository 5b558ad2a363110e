//! Counters of requests and calls, in the format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use toolwit::tool::ToolId;

/// The upper limits of the buckets of the duration histogram, in milliseconds.
const BUCKET_LIMITS_MS: [u64; 10] = [1, 5, 10, 50, 100, 500, 1_000, 5_000, 30_000, 300_000];

/// Maximum number of series of tools. The calls of further tools are counted under [`OTHER_TOOL`].
const TOOL_SERIES_MAX: usize = 1_000;

/// The name under which calls without a tool are counted, and calls of tools beyond [`TOOL_SERIES_MAX`].
const OTHER_TOOL: &str = "other";

/// The counters and gauges of a server.
#[derive(Default)]
pub(crate) struct Metrics {
    /// The HTTP responses, by the first digit of their status.
    responses: [AtomicU64; 6],
    /// The rejected requests, by the reason.
    rejected: Mutex<BTreeMap<&'static str, u64>>,
    /// The tool calls, by the group of the principal and the outcome.
    calls: Mutex<BTreeMap<(String, &'static str), u64>>,
    /// The tool calls, by the id of the tool and the outcome. An id is not bound to an entity.
    tool_calls: Mutex<BTreeMap<(String, &'static str), u64>>,
    /// The tool calls in each bucket of the duration histogram. The last bucket has no limit.
    duration_buckets: [AtomicU64; BUCKET_LIMITS_MS.len() + 1],
    /// The sum of the durations of all tool calls, in milliseconds.
    duration_ms: AtomicU64,
    /// The open connections over HTTP.
    pub(crate) connections: AtomicU64,
}

impl Metrics {
    /// Counts an HTTP response.
    pub(crate) fn count_response(&self, status: u16) {
        if let Some(counter) = self.responses.get(usize::from(status / 100)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a request that was rejected before it reached the MCP service.
    pub(crate) fn count_rejection(&self, reason: &'static str) {
        let mut rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        *rejected.entry(reason).or_default() += 1;
    }

    /// Counts a tool call of a group of principals. `tool` is `None` if no tool was called.
    pub(crate) fn count_call(&self, group: &str, tool: Option<&ToolId>, outcome: &'static str, duration: Duration) {
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let bucket = BUCKET_LIMITS_MS
            .iter()
            .position(|limit| ms <= *limit)
            .unwrap_or(BUCKET_LIMITS_MS.len());
        self.duration_buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.duration_ms.fetch_add(ms, Ordering::Relaxed);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry((group.to_owned(), outcome)).or_default() += 1;
        drop(calls);
        self.count_tool(tool, outcome);
    }

    fn count_tool(&self, tool: Option<&ToolId>, outcome: &'static str) {
        let mut calls = self.tool_calls.lock().unwrap_or_else(PoisonError::into_inner);
        let name = tool.map_or_else(|| OTHER_TOOL.to_owned(), |tool| tool.unbound().as_str().to_owned());
        if let Some(count) = calls.get_mut(&(name.clone(), outcome)) {
            *count += 1;
            return;
        }
        let is_new = calls.len() >= TOOL_SERIES_MAX && !calls.keys().any(|(counted, _)| *counted == name);
        let name = if is_new { OTHER_TOOL.to_owned() } else { name };
        *calls.entry((name, outcome)).or_default() += 1;
    }

    /// Returns all counters in the text format of Prometheus. `sessions` is the number of live sessions.
    pub(crate) fn render(&self, sessions: usize) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text, sessions);
        text
    }

    fn write(&self, text: &mut String, sessions: usize) -> std::fmt::Result {
        writeln!(
            text,
            "# TYPE toolwit_mcp_sessions gauge\ntoolwit_mcp_sessions {sessions}"
        )?;
        let connections = self.connections.load(Ordering::Relaxed);
        writeln!(
            text,
            "# TYPE toolwit_mcp_connections gauge\ntoolwit_mcp_connections {connections}"
        )?;
        writeln!(text, "# TYPE toolwit_mcp_http_responses_total counter")?;
        for (class, counter) in self.responses.iter().enumerate().skip(2) {
            let count = counter.load(Ordering::Relaxed);
            writeln!(text, "toolwit_mcp_http_responses_total{{status=\"{class}xx\"}} {count}")?;
        }
        writeln!(text, "# TYPE toolwit_mcp_http_rejected_total counter")?;
        for (reason, count) in self.rejected.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            writeln!(text, "toolwit_mcp_http_rejected_total{{reason=\"{reason}\"}} {count}")?;
        }
        writeln!(text, "# TYPE toolwit_mcp_calls_total counter")?;
        for ((group, outcome), count) in self.calls.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let group = escape_label(group);
            writeln!(
                text,
                "toolwit_mcp_calls_total{{principal=\"{group}\",outcome=\"{outcome}\"}} {count}"
            )?;
        }
        writeln!(text, "# TYPE toolwit_mcp_tool_calls_total counter")?;
        for ((tool, outcome), count) in self.tool_calls.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let tool = escape_label(tool);
            writeln!(
                text,
                "toolwit_mcp_tool_calls_total{{tool=\"{tool}\",outcome=\"{outcome}\"}} {count}"
            )?;
        }
        writeln!(text, "# TYPE toolwit_mcp_call_seconds histogram")?;
        let mut cumulative = 0;
        for (counter, limit) in self
            .duration_buckets
            .iter()
            .zip(BUCKET_LIMITS_MS.map(Some).into_iter().chain([None]))
        {
            cumulative += counter.load(Ordering::Relaxed);
            match limit {
                Some(ms) => {
                    let seconds = Duration::from_millis(ms).as_secs_f64();
                    writeln!(text, "toolwit_mcp_call_seconds_bucket{{le=\"{seconds}\"}} {cumulative}")?;
                }
                None => writeln!(text, "toolwit_mcp_call_seconds_bucket{{le=\"+Inf\"}} {cumulative}")?,
            }
        }
        let total_seconds = Duration::from_millis(self.duration_ms.load(Ordering::Relaxed)).as_secs_f64();
        writeln!(
            text,
            "toolwit_mcp_call_seconds_sum {total_seconds}\ntoolwit_mcp_call_seconds_count {cumulative}"
        )
    }
}

/// Escapes the value of a Prometheus label.
fn escape_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_rendered_with_their_labels() {
        let metrics = Metrics::default();
        metrics.count_response(200);
        metrics.count_response(403);
        metrics.count_rejection("host");
        let tool = ToolId::native("add");
        metrics.count_call("a\"b", Some(&tool), "ok", Duration::from_millis(7));
        metrics.count_call("a\"b", Some(&tool.bound_to("c-1")), "error", Duration::from_secs(1_000));
        let text = metrics.render(3);
        for line in [
            "toolwit_mcp_sessions 3",
            "toolwit_mcp_http_responses_total{status=\"2xx\"} 1",
            "toolwit_mcp_http_rejected_total{reason=\"host\"} 1",
            "toolwit_mcp_calls_total{principal=\"a\\\"b\",outcome=\"ok\"} 1",
            "toolwit_mcp_tool_calls_total{tool=\"native#add\",outcome=\"ok\"} 1",
            "toolwit_mcp_tool_calls_total{tool=\"native#add\",outcome=\"error\"} 1",
            "toolwit_mcp_call_seconds_bucket{le=\"0.005\"} 0",
            "toolwit_mcp_call_seconds_bucket{le=\"0.01\"} 1",
            "toolwit_mcp_call_seconds_bucket{le=\"+Inf\"} 2",
            "toolwit_mcp_call_seconds_sum 1000.007",
        ] {
            assert!(text.lines().any(|written| written == line), "{line} in\n{text}");
        }
    }

    // attack: G12
    #[test]
    fn the_number_of_series_of_tools_is_limited() {
        let metrics = Metrics::default();
        for number in 0..TOOL_SERIES_MAX + 10 {
            let tool = ToolId::native(&format!("t{number}"));
            metrics.count_call("a", Some(&tool), "ok", Duration::ZERO);
        }
        metrics.count_call("a", None, "refused", Duration::ZERO);
        metrics.count_call("a", Some(&ToolId::native("t0")), "error", Duration::ZERO);
        let text = metrics.render(0);
        let series = text
            .lines()
            .filter(|line| line.starts_with("toolwit_mcp_tool_calls_total"));
        assert_eq!(series.count(), TOOL_SERIES_MAX + 3);
        assert!(text.contains("{tool=\"other\",outcome=\"ok\"} 10\n"), "{text}");
        assert!(text.contains("{tool=\"other\",outcome=\"refused\"} 1\n"), "{text}");
        assert!(text.contains("{tool=\"native#t0\",outcome=\"error\"} 1\n"), "{text}");
    }
}
