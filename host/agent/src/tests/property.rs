//! Property test of injections: the history is always valid, and declared tools are only appended within a turn,
//! unless tools are evicted.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;
use crate::injection::{Injection, InjectionContext};
use toolwit_core::ToolId;

/// The number of tools that an injection can add and remove.
const TOOL_COUNT: usize = 8;

/// The injection after one call: the numbers of the tools to add and to remove.
type ToolChange = (Vec<usize>, Vec<usize>);

/// The calls of one response. Each call has the number of a tool, which may not exist, a call id, and raw arguments.
type Response = Vec<(usize, String, &'static str)>;

fn changes() -> impl Strategy<Value = Vec<ToolChange>> {
    let tool_numbers = || prop::collection::vec(0..TOOL_COUNT, 0..3);
    prop::collection::vec((tool_numbers(), tool_numbers()), 1..12)
}

fn turns() -> impl Strategy<Value = Vec<Vec<Response>>> {
    let arguments = prop::sample::select(vec![
        "{}",
        "",
        "{\"a\": 1}",
        "{\"a\": [1,]}",
        "{",
        "null",
        "{\"fail\": true}",
    ]);
    let fields = (
        0..TOOL_COUNT + 2,
        prop::sample::select(vec!["", "a", "b", "call_1"]),
        arguments,
    );
    let call = fields.prop_map(|(tool, id, arguments)| (tool, id.to_owned(), arguments));
    let response = prop::collection::vec(call, 1..5);
    prop::collection::vec(prop::collection::vec(response, 0..4), 1..4)
}

fn tool_name(number: usize) -> String {
    format!("tool_{number}")
}

fn numbered_tool(number: usize) -> Arc<dyn Tool> {
    tool(&tool_name(number), |arguments, _| {
        Ok(if arguments.contains_key("fail") {
            ToolResult::error("failed as requested")
        } else {
            ToolResult::text("done")
        })
    })
}

/// Returns an injection strategy that makes these changes in order and then repeats them, regardless of the conversation.
fn scripted_strategy(changes: Vec<ToolChange>) -> impl Fn(&InjectionContext<'_>) -> Injection + Send + Sync + 'static {
    let next = AtomicUsize::new(0);
    move |_| {
        let (add, remove) = &changes[next.fetch_add(1, Ordering::Relaxed) % changes.len()];
        let mut injection = Injection::add(add.iter().map(|number| numbered_tool(*number)).collect());
        injection.merge(Injection::remove(
            remove
                .iter()
                .map(|number| ToolId::native(&tool_name(*number)))
                .collect(),
        ));
        injection
    }
}

/// Returns a step in which the model makes the calls of this response.
fn response_step(response: Response) -> Step {
    let calls = response
        .iter()
        .map(|(tool, _, arguments)| (tool_name(*tool), (*arguments).to_owned()))
        .collect();
    edit_response(raw_calls(calls), move |chat_response| {
        for (call, (_, id, _)) in chat_response.tool_calls.iter_mut().zip(response) {
            call.id = id;
        }
    })
}

/// Checks that declared tools are only appended within a turn, unless tools are evicted. Also checks that the tools
/// derived from the events are the declared tools, and that at most `tools_max` tools are declared.
pub(super) fn assert_declared_tools_grow(model: &TestModel, tools_max: usize) {
    let events = model.events();
    let mut previous_position = 0;
    let inferences = events
        .iter()
        .enumerate()
        .filter(|(_, event)| matches!(event, Event::IterationStarted { .. }));
    let mut previous_request: Option<RecordedRequest> = None;
    for (inference, (position, _)) in inferences.enumerate() {
        let request = model.request(inference);
        let visible: Vec<_> = visible_tools(&events[..position])
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            request.names, visible,
            "the tools derived from the events are the declared tools"
        );
        assert!(request.names.len() <= tools_max);
        let removes_tools = |event: &Event| matches!(event, Event::TurnStarted { .. } | Event::ToolsEvicted { .. });
        let may_shrink = events[previous_position..position].iter().any(removes_tools);
        if let Some(previous) = previous_request.filter(|_| !may_shrink) {
            let (earlier, now) = (previous.serialised_tools.join(","), request.serialised_tools.join(","));
            assert!(
                now.starts_with(&earlier),
                "the earlier tools are unchanged: {earlier} {now}"
            );
        }
        previous_position = position;
        previous_request = Some(request);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    // accept: 3, accept: 20, accept: 92, accept: 23, accept: 133, attack: F9
    #[test]
    fn the_history_is_always_valid_and_declared_tools_only_grow(
        changes in changes(),
        turns in turns(),
        tools_max in prop::sample::select(vec![4, 128]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let steps = turns.iter().flat_map(|turn| {
            turn.iter().cloned().map(response_step).chain([reply("ok")])
        });
        let (builder, model) = TestModel::playing(steps.collect::<Vec<_>>());
        let limits = LoopLimits {
            tools_max,
            unknown_tools: UnknownToolPolicy::Never,
            ..LoopLimits::default()
        };
        let mut conversation = builder
            .tools([numbered_tool(0), numbered_tool(1)])
            .strategy(scripted_strategy(changes))
            .limits(limits)
            .build()
            .unwrap();
        for turn in &turns {
            let outcome = runtime.block_on(conversation.run("go")).unwrap();
            assert_valid(&outcome.history);
            prop_assert_eq!(outcome.iterations as usize, turn.len() + 1);
        }
        let call_count: usize = turns.iter().flatten().map(Vec::len).sum();
        prop_assert_eq!(tool_results(conversation.history()).len(), call_count);
        assert_declared_tools_grow(&model, tools_max);
    }
}
