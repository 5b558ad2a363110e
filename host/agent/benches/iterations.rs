//! Measures the loop's own time for an iteration with one call, and for an empty turn, by the number of tools and of earlier calls.
//!
//! Run it with `cargo bench -p toolwit-agent --bench iterations`. The time that the scripted model takes is subtracted. Results are
//! ratios to the smallest conversation: an iteration must not become slower with earlier calls, and a turn only in proportion to
//! its tools.

#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![allow(missing_docs, unreachable_pub)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::json;
use toolwit_agent::injection::{Playbook, StateMachine, Unlock};
use toolwit_agent::model::{ChatModel, ChatRequest, ChatResponse, ModelError, ScriptedModel};
use toolwit_agent::{Conversation, Event, LoopLimits};
use toolwit_core::{NativeTool, Tool, ToolId, ToolResult};

/// The iterations of one measured turn.
const ITERATIONS: u32 = 50;

/// The measured turns of each conversation, of which the fastest counts.
const TURNS: usize = 5;

/// A scripted model that measures the time that it takes.
struct Timed {
    script: Mutex<Arc<ScriptedModel>>,
    nanos: AtomicU64,
}

#[async_trait]
impl ChatModel for Timed {
    fn name(&self) -> &str {
        "timed"
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        let started = Instant::now();
        let script = self.script.lock().unwrap().clone();
        let response = script.chat(request).await;
        let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        response
    }
}

impl Timed {
    /// Plays calls of `tool_0`, then an answer.
    fn play(&self, calls: u32) {
        let script = (0..calls).fold(ScriptedModel::new(), |script, _| script.call("tool_0", json!({})));
        *self.script.lock().unwrap() = Arc::new(script.answer("done"));
        self.nanos.store(0, Ordering::Relaxed);
    }
}

/// A conversation whose calls pass a playbook, a state machine and the default strategies.
struct Bench {
    conversation: Conversation,
    model: Arc<Timed>,
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
        let model = Arc::new(Timed {
            script: Mutex::default(),
            nanos: AtomicU64::new(0),
        });
        let playbook = Playbook::new().with_lock("tool_1", Unlock::by("native#tool_0"));
        let machine = StateMachine::builder().initial("open").in_state("open");
        let machine = machine.existing_tool(&ToolId::native("tool_0")).build().unwrap();
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
            .observer(|_: &Event| {});
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

    /// Runs a turn with this number of calls, and returns the time that the loop took.
    fn turn(&mut self, calls: u32) -> Duration {
        self.model.play(calls);
        let started = Instant::now();
        self.runtime.block_on(self.conversation.run("go")).unwrap();
        let model = Duration::from_nanos(self.model.nanos.load(Ordering::Relaxed));
        started.elapsed().saturating_sub(model)
    }

    /// Returns the time of an empty turn, and of one iteration beyond it.
    fn measure(&mut self) -> (Duration, Duration) {
        let empty = (0..TURNS).map(|_| self.turn(0)).min().unwrap();
        let full = (0..TURNS).map(|_| self.turn(ITERATIONS)).min().unwrap();
        (empty, full.saturating_sub(empty) / ITERATIONS)
    }
}

fn ratio(value: Duration, base: Duration) -> f64 {
    value.as_secs_f64() / base.as_secs_f64().max(1e-9)
}

fn main() {
    let sizes = [
        (10, 250),
        (10, 1_000),
        (10, 4_000),
        (250, 250),
        (1_000, 250),
        (4_000, 250),
    ];
    let (base_turn, base_iteration) = Bench::new(10, 250).measure();
    println!(" tools  earlier calls   iteration  ratio   empty turn  ratio");
    for (tools, earlier_calls) in sizes {
        let (turn, iteration) = Bench::new(tools, earlier_calls).measure();
        println!(
            "{tools:>6}  {earlier_calls:>13}  {:>7.1} µs  {:>5.2}  {:>8.1} µs  {:>5.1}",
            iteration.as_secs_f64() * 1e6,
            ratio(iteration, base_iteration),
            turn.as_secs_f64() * 1e6,
            ratio(turn, base_turn),
        );
    }
}
