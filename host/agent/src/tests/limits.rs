//! Limits of a run.

use super::*;
use toolwit_core::ErrorKind;

/// Returns the default limits after `change` changed them.
fn limits(change: impl FnOnce(&mut LoopLimits)) -> LoopLimits {
    let mut limits = LoopLimits::default();
    change(&mut limits);
    limits
}

/// Returns `count` steps in which the model calls `look`.
fn looks(count: usize) -> Vec<Step> {
    (0..count).map(|_| call([("look", json!({}))])).collect()
}

// accept: 6, attack: F8
#[tokio::test]
async fn an_endless_run_stops_at_the_iteration_limit() {
    let (builder, model) = TestModel::playing(looks(20));
    let error = builder
        .tools([echo("look")])
        .build()
        .unwrap()
        .run("go")
        .await
        .unwrap_err();
    assert!(matches!(error.failure, RunFailure::IterationLimit { max: 20 }));
    assert_eq!(
        (error.outcome.stop, error.outcome.iterations),
        (StopReason::IterationLimit, 20)
    );
    assert_eq!(model.request_count(), 20);
    assert_valid(&error.outcome.history);
    let report = toolwit_core::Error::from(error);
    assert_eq!(
        (report.kind, report.limit.as_ref().unwrap().max),
        (ErrorKind::LoopLimit, 20)
    );
    assert!(report.suggestion.as_deref().unwrap().contains("overly complex task"));
}

// accept: 19
#[tokio::test]
async fn the_iteration_limit_is_configurable() {
    let (builder, model) = TestModel::playing(looks(3));
    let mut conversation = builder.tools([echo("look")]).iterations_max(3).build().unwrap();
    assert_eq!(conversation.run("go").await.unwrap_err().outcome.iterations, 3);
    assert_eq!(model.request_count(), 3);
}

// accept: 7
#[tokio::test]
async fn the_partial_policy_returns_the_last_text() {
    let text_and_call = edit_response(call([("look", json!({}))]), |response| {
        response.content = "So far: blue.".to_owned()
    });
    let (builder, _) = TestModel::playing([text_and_call, call([("look", json!({}))])]);
    let partial = limits(|limits| {
        limits.iterations_max = 2;
        limits.on_iterations_max = IterationPolicy::Partial;
    });
    let outcome = builder.tools([echo("look")]).limits(partial).run("go").await.unwrap();
    assert_eq!(
        (outcome.text(), outcome.stop),
        ("So far: blue.", StopReason::IterationLimit)
    );
}

// accept: 7
#[tokio::test]
async fn the_final_answer_policy_requests_one_more_response_without_tools() {
    let final_answer = limits(|limits| {
        limits.iterations_max = 2;
        limits.on_iterations_max = IterationPolicy::FinalAnswer;
    });
    let mut steps = looks(2);
    steps.push(reply("Blue, I think."));
    let (builder, model) = TestModel::playing(steps);
    let outcome = builder
        .tools([echo("look")])
        .limits(final_answer.clone())
        .run("go")
        .await
        .unwrap();
    assert_eq!(
        (outcome.text(), outcome.stop),
        ("Blue, I think.", StopReason::IterationLimit)
    );
    assert_eq!(model.request(2).tool_choice, ToolChoice::None);
    assert_eq!(
        model.request(2).serialised_tools,
        model.request(1).serialised_tools,
        "the prefix of the prompt is unchanged"
    );

    let (builder, _) = TestModel::playing(looks(3));
    let error = builder
        .tools([echo("look")])
        .limits(final_answer)
        .build()
        .unwrap()
        .run("go")
        .await
        .unwrap_err();
    assert!(matches!(error.failure, RunFailure::IterationLimit { max: 2 }));
    assert_valid(&error.outcome.history);
    assert!(tool_results(&error.outcome.history)[2].contains("not run"));
}

// attack: F8
#[tokio::test]
async fn calls_beyond_the_limit_of_a_response_are_refused() {
    let calls = (0..500).map(|_| ("look".to_owned(), "{}".to_owned())).collect();
    let (builder, _) = TestModel::playing([raw_calls(calls), reply("ok")]);
    let thousand_calls = limits(|limits| limits.calls_max = 1000);
    let outcome = builder
        .tools([echo("look")])
        .limits(thousand_calls)
        .run("go")
        .await
        .unwrap();
    assert_valid(&outcome.history);
    assert_eq!(outcome.tool_calls.len(), 32);
    assert!(tool_results(&outcome.history)[32].contains("too many calls in one response"));
}

// attack: F8
#[tokio::test]
async fn calls_beyond_the_limit_of_a_run_end_it() {
    let three_calls = || call([("look", json!({})), ("look", json!({})), ("look", json!({}))]);
    let (builder, model) = TestModel::playing([three_calls(), three_calls()]);
    let five_calls = limits(|limits| limits.calls_max = 5);
    let error = builder
        .tools([echo("look")])
        .limits(five_calls)
        .build()
        .unwrap()
        .run("go")
        .await
        .unwrap_err();
    assert!(matches!(error.failure, RunFailure::CallLimit { max: 5 }));
    assert_eq!((error.outcome.tool_calls.len(), model.request_count()), (5, 2));
    assert_valid(&error.outcome.history);
    assert!(tool_results(&error.outcome.history)[5].contains("no tool calls left"));
}

#[tokio::test]
async fn the_token_limit_ends_a_run_before_its_calls_start_but_does_not_discard_an_answer() {
    let set_usage = |response: &mut ChatResponse| response.usage = TokenUsage::new(600, 0, 10);
    let steps = || {
        vec![
            edit_response(call([("look", json!({}))]), set_usage),
            edit_response(call([("look", json!({}))]), set_usage),
        ]
    };
    let (builder, _) = TestModel::playing(steps());
    let token_limit = limits(|limits| limits.tokens_max = Some(1000));
    let error = builder
        .tools([echo("look")])
        .limits(token_limit.clone())
        .build()
        .unwrap()
        .run("go")
        .await
        .unwrap_err();
    assert!(matches!(
        error.failure,
        RunFailure::TokenLimit { max: 1000, used: 1220 }
    ));
    assert_eq!(error.outcome.tool_calls.len(), 1);
    assert_valid(&error.outcome.history);
    let (builder, _) = TestModel::playing([edit_response(reply("Blue."), |response| {
        response.usage = TokenUsage::new(5000, 0, 1)
    })]);
    assert!(builder.limits(token_limit).run("go").await.is_ok());
}

// accept: 8
#[tokio::test]
async fn three_consecutive_responses_with_unknown_tools_end_the_run() {
    let unknown = || call([("nowhere", json!({}))]);
    let (builder, model) = TestModel::playing([
        unknown(),
        unknown(),
        call([("look", json!({}))]),
        unknown(),
        unknown(),
        unknown(),
    ]);
    let error = builder
        .tools([echo("look")])
        .build()
        .unwrap()
        .run("go")
        .await
        .unwrap_err();
    let RunFailure::UnknownTools {
        requested,
        times,
        available,
    } = &error.failure
    else {
        panic!("{error}")
    };
    assert_eq!(
        (requested.as_str(), *times, available[0].as_str()),
        ("nowhere", 3, "look")
    );
    assert_eq!(
        model.request_count(),
        6,
        "a response without unknown names resets the count"
    );
    assert_valid(&error.outcome.history);
    assert!(
        toolwit_core::Error::from(error)
            .suggestion
            .as_deref()
            .unwrap()
            .contains("`look`")
    );
}

// accept: 8
#[tokio::test]
async fn the_policy_for_unknown_tools_can_end_a_run_at_the_first_one_or_never() {
    let unknown = || call([("nowhere", json!({})), ("look", json!({}))]);
    let (builder, _) = TestModel::playing([unknown()]);
    let at_once = limits(|limits| limits.unknown_tools = UnknownToolPolicy::StopAfter(1));
    let error = builder
        .tools([echo("look")])
        .limits(at_once)
        .build()
        .unwrap()
        .run("go")
        .await
        .unwrap_err();
    assert_eq!(error.outcome.stop, StopReason::UnknownTools);
    assert_valid(&error.outcome.history);
    let (builder, _) = TestModel::playing((0..6).map(|_| unknown()).chain([reply("ok")]));
    let never = limits(|limits| limits.unknown_tools = UnknownToolPolicy::Never);
    assert!(builder.tools([echo("look")]).limits(never).run("go").await.is_ok());
}

// attack: F1, attack: F2
#[tokio::test]
async fn truncated_and_withheld_answers_are_failures_and_an_empty_answer_is_not() {
    let finish_with = |reason| {
        edit_response(reply("It is bl"), move |response: &mut ChatResponse| {
            response.finish = reason
        })
    };
    let (builder, _) = TestModel::playing([finish_with(FinishReason::Length)]);
    let error = builder.build().unwrap().run("go").await.unwrap_err();
    assert!(matches!(error.failure, RunFailure::Length));
    assert_eq!(error.outcome.text(), "It is bl");
    let (builder, _) = TestModel::playing([finish_with(FinishReason::ContentFilter)]);
    assert_eq!(
        builder.build().unwrap().run("go").await.unwrap_err().outcome.stop,
        StopReason::Withheld
    );
    let (builder, _) = TestModel::playing([reply("")]);
    assert_eq!(builder.run("go").await.unwrap().answer.as_deref(), Some(""));
}
