//! Measures the loop's own time for an iteration with one call, and for an empty turn, by the number of tools and of earlier calls.
//!
//! Run it with `cargo bench -p toolwit-agent --bench iterations`. An iteration is the median time from a response of the model to
//! its next request, a turn the shortest time around the only request. The ratios are to the smallest conversation: an iteration
//! must not become slower with earlier calls or with tools, and a turn only in proportion to them. The goal is less than
//! [`GOAL`] for an iteration with 1,000 tools.

#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![allow(missing_docs, unreachable_pub)]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::json;
use toolwit_agent::injection::{Playbook, StateMachine, Unlock};
use toolwit_agent::model::{ChatModel, ChatRequest, ChatResponse, ModelError};
use toolwit_agent::{Conversation, Event, LoopLimits};
use toolwit_core::{NativeTool, Origin, Tool, ToolCall, ToolId, ToolResult};

/// The number of iterations per measurement. Their median is the result.
const ITERATIONS: u32 = 50;

/// The goal for an iteration of a conversation with up to 1,000 tools.
const GOAL: Duration = Duration::from_micros(50);

/// The number of empty turns per measurement. The shortest is the result.
const TURNS: usize = 10;

/// A model that plays calls of `tool_0`, then an answer, and records when it was asked and when it responded.
///
/// [`ScriptedModel`](toolwit_agent::model::ScriptedModel) keeps a copy of every request. In a long conversation, these copies displace
/// the loop's data from the processor's caches.
#[derive(Default)]
struct TimedScript {
    calls_left: AtomicU32,
    responses: Mutex<Vec<(Instant, Instant)>>,
}

#[async_trait]
impl ChatModel for TimedScript {
    fn name(&self) -> &str {
        "timed"
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        let asked = Instant::now();
        let is_left = |left: u32| left.checked_sub(1);
        let response = match self
            .calls_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_left)
        {
            Ok(_) => {
                let call = ToolCall {
                    id: format!("call_at_{}", request.messages.len()),
                    name: "tool_0".to_owned(),
                    arguments: "{}".to_owned(),
                };
                ChatResponse::new("", vec![call])
            }
            Err(_) => ChatResponse::new("done", Vec::new()),
        };
        self.responses.lock().unwrap().push((asked, Instant::now()));
        Ok(response)
    }
}

impl TimedScript {
    fn play(&self, calls: u32) {
        self.calls_left.store(calls, Ordering::Relaxed);
        self.responses.lock().unwrap().clear();
    }
}

/// A conversation whose calls pass a playbook, a state machine and the default strategies.
struct Bench {
    conversation: Conversation,
    model: Arc<TimedScript>,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    /// Starts a conversation with this number of tools, after this number of calls in earlier turns.
    fn new(tools: usize, earlier_calls: u32) -> Self {
        let tools = (0..tools).map(|number| {
            let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
            let tool = NativeTool::new(&format!("tool_{number}"), "Does one thing.", schema, |_, _| async {
                Ok(ToolResult::text("done"))
            });
            Arc::new(tool.unwrap()) as Arc<dyn Tool>
        });
        let model = Arc::new(TimedScript::default());
        let playbook = Playbook::new().with_lock("tool_1", Unlock::by("native#tool_0"));
        let machine = StateMachine::builder().initial("open").in_state("open");
        let machine = machine.existing_tool(ToolId::native("tool_0")).build().unwrap();
        let limits = LoopLimits {
            iterations_max: u32::MAX,
            calls_max: u32::MAX,
            tools_max: usize::MAX,
            ..LoopLimits::default()
        };
        let builder = Conversation::builder().model(model.clone()).tools(tools).limits(limits);
        let builder = builder
            .playbook(playbook)
            .state_machine(machine)
            .observer(|_: &Event, _: &Origin| {});
        let mut bench = Self {
            conversation: builder.build().unwrap(),
            model,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap(),
        };
        if earlier_calls > 0 {
            bench.turn(earlier_calls);
        }
        bench
    }

    /// Runs a turn with this number of calls. Returns the time around its requests.
    fn turn(&mut self, calls: u32) -> Duration {
        self.model.play(calls);
        let started = Instant::now();
        let outcome = self.runtime.block_on(self.conversation.run("go")).unwrap();
        let elapsed = started.elapsed();
        drop(outcome);
        let responses = self.model.responses.lock().unwrap();
        elapsed.saturating_sub(responses.iter().map(|(asked, responded)| *responded - *asked).sum())
    }

    /// Returns the time of an empty turn, and of an iteration.
    fn measure(&mut self) -> (Duration, Duration) {
        let empty = (0..TURNS).map(|_| self.turn(0)).min().unwrap();
        self.turn(ITERATIONS);
        let responses = self.model.responses.lock().unwrap();
        let mut iterations: Vec<_> = responses.windows(2).map(|pair| pair[1].0 - pair[0].1).collect();
        iterations.sort_unstable();
        (empty, iterations[iterations.len() / 2])
    }
}

fn ratio(value: Duration, base: Duration) -> f64 {
    value.as_secs_f64() / base.as_secs_f64().max(1e-9)
}

fn main() {
    let sizes = [
        (40, 250),
        (40, 4_000),
        (250, 250),
        (1_000, 250),
        (1_000, 4_000),
        (4_000, 250),
    ];
    let (smallest_tools, smallest_calls) = sizes[0];
    let (base_turn, base_iteration) = Bench::new(smallest_tools, smallest_calls).measure();
    println!(" tools  earlier calls   iteration  ratio   empty turn  ratio");
    for (tools, earlier_calls) in sizes {
        let (turn, iteration) = Bench::new(tools, earlier_calls).measure();
        let missed = if tools <= 1_000 && iteration >= GOAL {
            "  over the goal"
        } else {
            ""
        };
        println!(
            "{tools:>6}  {earlier_calls:>13}  {:>7.1} µs  {:>5.2}  {:>8.1} µs  {:>5.1}{missed}",
            iteration.as_secs_f64() * 1e6,
            ratio(iteration, base_iteration),
            turn.as_secs_f64() * 1e6,
            ratio(turn, base_turn),
        );
    }
}
