//! The interceptors decide about every call of a tool, however it is made.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use toolwit::agent::{ToolSession, ToolSource};
use toolwit::sandbox::Scope;
use toolwit::tool::{
    Approval, ApprovalMode, ApprovalPolicy, ApprovalRequest, Approvals, CallDecision, CallOutcome, InterceptedCall,
    Interceptor, OutcomeReview,
};
use toolwit::{
    AgenticTool, Arguments, Entity, Error, NativeTool, ScriptedModel, Tool, ToolContext, ToolResult, ToolSelector,
    Toolwit, tool,
};

use crate::host::{builder, object};

const BEGIN: &str = "courier/test:courier/courier@0.1.0#begin";
const BURN: &str = "courier/test:courier/courier@0.1.0#burn";

/// Records the calls, and denies those of `burn` and `remote`.
#[derive(Clone, Default)]
struct Rules(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Interceptor for Rules {
    fn name(&self) -> &str {
        "rules"
    }

    async fn before(&self, call: &InterceptedCall, _: &ToolContext) -> Result<CallDecision, Error> {
        self.0.lock().unwrap().push(call.tool.to_string());
        Ok(match call.name.as_str() {
            "burn" | "remote" => CallDecision::Deny {
                reason: "not here".to_owned(),
            },
            _ => CallDecision::Continue,
        })
    }

    async fn after(&self, _: &InterceptedCall, _: CallOutcome, _: &ToolContext) -> Result<OutcomeReview, Error> {
        Ok(OutcomeReview::Keep)
    }
}

/// A server with one tool.
struct Server;

#[async_trait]
impl ToolSource for Server {
    fn name(&self) -> &str {
        "server"
    }

    fn cached_tools(&self, _: &ToolContext) -> Option<Vec<Arc<dyn Tool>>> {
        None
    }

    async fn tools(&self, _: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        let remote = NativeTool::new("remote", "Runs elsewhere.", json!({"type": "object"}), |_, _| async {
            Ok(ToolResult::text("ran"))
        });
        Ok(vec![Arc::new(remote?)])
    }
}

async fn host(rules: &Rules) -> Toolwit {
    let directory = tempfile::tempdir().unwrap();
    let builder = builder(&directory, "").await;
    let builder = builder
        .shared_source(Server)
        .interceptor(ToolSelector::all(), rules.clone());
    builder.build().await.unwrap()
}

fn follow_up_arguments() -> Arguments {
    object(json!({"tool": "burn", "arguments": "{\"rounds\": 0}"}))
}

// attack: Q2
#[tokio::test]
async fn a_follow_up_call_is_intercepted_like_a_call() {
    let rules = Rules::default();
    let host = host(&rules).await;
    let denied = "begun\n[the work does not continue: the interceptor `rules` denied the call: not here]";
    let mut session = host.call_session(ToolContext::new());
    let begin = session.find(BEGIN).unwrap();
    let result = session.call(&begin, follow_up_arguments()).await.result.unwrap();
    assert_eq!(result.for_llm, denied);
    assert_eq!(*rules.0.lock().unwrap(), [BEGIN, BURN]);
    // A tool that the application calls by itself.
    let tools = host.tools(&Scope::new());
    let begin = tools
        .iter()
        .find(|tool| tool.definition().id.as_str() == BEGIN)
        .unwrap();
    let result = begin.call(follow_up_arguments(), &ToolContext::new()).await.unwrap();
    assert_eq!(result.for_llm, denied);
    // A client of a server.
    let session = ToolSession::begin(host.conversation()).await.unwrap();
    let answer = session
        .call("begin", follow_up_arguments(), &ToolContext::new())
        .await
        .unwrap();
    assert_eq!(answer.result.for_llm, denied);
    // A model, whose conversation receives the denial later.
    let before = rules.0.lock().unwrap().len();
    let model = ScriptedModel::new()
        .call("begin", follow_up_arguments().into())
        .answer("begun")
        .answer("done");
    let mut conversation = host.conversation().model(model).build().unwrap();
    conversation.run("Begin.").await.unwrap();
    while rules.0.lock().unwrap().len() < before + 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(rules.0.lock().unwrap()[before..], [BEGIN, BURN]);
}

// attack: Q2
#[tokio::test]
async fn a_tool_of_a_server_is_intercepted_in_a_single_call() {
    let rules = Rules::default();
    let host = host(&rules).await;
    let mut session = host.call_session(ToolContext::new());
    assert!(session.add_sources("remote").await.is_empty());
    let remote = session.find("remote").unwrap();
    let error = session.call(&remote, object(json!({}))).await.result.unwrap_err();
    assert!(error.report().message.contains("denied the call: not here"), "{error}");
}

/// Returns a tool with a name that the rules deny, which counts its runs.
fn counting_tool(name: &str, runs: &Arc<Mutex<u32>>) -> NativeTool {
    let runs = runs.clone();
    let run = move |_, _| {
        *runs.lock().unwrap() += 1;
        async { Ok(ToolResult::text("ran")) }
    };
    NativeTool::new(name, "Runs.", json!({"type": "object"}), run).unwrap()
}

// attack: Q2
#[tokio::test]
async fn the_tools_of_an_agent_inside_an_agent_are_intercepted() {
    let (rules, runs) = (Rules::default(), Arc::default());
    let inner = AgenticTool::new("inner", "Does the work.")
        .with_tool(counting_tool("remote", &runs))
        .with_tool(counting_tool("allowed", &runs))
        .with_model(
            ScriptedModel::new()
                .call("remote", json!({}))
                .call("allowed", json!({}))
                .answer("tried"),
        );
    let outer = AgenticTool::new("outer", "Delegates.").with_tool(inner).with_model(
        ScriptedModel::new()
            .call("inner", json!({"task": "Work."}))
            .answer("delegated"),
    );
    let directory = tempfile::tempdir().unwrap();
    let builder = builder(&directory, "").await.tool(outer);
    let builder = builder.interceptor(ToolSelector::all(), rules.clone());
    let host = builder.build().await.unwrap();
    let model = ScriptedModel::new()
        .call("outer", json!({"task": "Work."}))
        .answer("done");
    let mut conversation = host.conversation().model(model).build().unwrap();
    conversation.run("Work.").await.unwrap();
    assert_eq!(*runs.lock().unwrap(), 1, "only the allowed one");
    let seen = rules.0.lock().unwrap().clone();
    assert_eq!(
        seen,
        ["native#outer", "native#inner", "native#remote", "native#allowed"]
    );
}

/// A live object.
#[derive(Clone, Entity)]
struct Safe {
    id: String,
}

#[tool]
impl Safe {
    /// Opens the safe.
    #[tool]
    fn open(&self) -> String {
        self.id.clone()
    }
}

/// Finds a safe.
#[tool]
fn find_safe() -> Safe {
    Safe { id: "7".to_owned() }
}

// attack: Q2
#[tokio::test]
async fn a_method_of_an_entity_is_intercepted() {
    let rules = Rules::default();
    let directory = tempfile::tempdir().unwrap();
    let builder = builder(&directory, "").await.tool(find_safe_tool().unwrap());
    let builder = builder.interceptor(ToolSelector::all(), rules.clone());
    let host = builder.build().await.unwrap();
    let model = ScriptedModel::new()
        .call("find_safe", json!({}))
        .call("safe_7_open", json!({}))
        .answer("done");
    let mut conversation = host.conversation().model(model).build().unwrap();
    conversation.run("Open it.").await.unwrap();
    let seen = rules.0.lock().unwrap().clone();
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert!(seen[1].ends_with("open"), "{seen:?}");
}

/// Appends a mark to the text of each call.
struct Marking;

#[async_trait]
impl Interceptor for Marking {
    fn name(&self) -> &str {
        "marking"
    }

    async fn before(&self, call: &InterceptedCall, _: &ToolContext) -> Result<CallDecision, Error> {
        let text = call.arguments["text"].as_str().unwrap();
        Ok(CallDecision::Edit(object(json!({"text": format!("{text}!")}))))
    }

    async fn after(&self, _: &InterceptedCall, _: CallOutcome, _: &ToolContext) -> Result<OutcomeReview, Error> {
        Ok(OutcomeReview::Keep)
    }
}

// attack: Q2
#[tokio::test]
async fn a_person_approves_the_arguments_that_interceptors_leave() {
    let directory = tempfile::tempdir().unwrap();
    let builder = builder(&directory, "").await;
    let builder = builder.interceptor(ToolSelector::from("echo"), Marking);
    let host = builder.build().await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = seen.clone();
    let approver = move |request: &ApprovalRequest| {
        asked.lock().unwrap().push(request.arguments.clone());
        match request.arguments["text"].as_str() {
            Some("edit!") => Approval::Edited {
                arguments: object(json!({"text": "by a person"})),
            },
            _ => Approval::Approved,
        }
    };
    let policy = ApprovalPolicy::of_mode(ApprovalMode::Always);
    let approvals = Approvals::new(policy).with_approver(approver);
    let builder = host.conversation().approvals(approvals);
    let model = ScriptedModel::new()
        .call("echo", json!({"text": "typed"}))
        .call("echo", json!({"text": "edit"}))
        .answer("done");
    let mut conversation = builder.model(model).build().unwrap();
    conversation.run("Say it.").await.unwrap();
    let shown = conversation
        .history()
        .iter()
        .map(|message| message.content().to_owned());
    let shown: Vec<String> = shown.collect();
    assert!(shown.iter().any(|text| text == "typed!"), "intercepted once: {shown:?}");
    assert!(
        shown.iter().any(|text| text.ends_with("by a person!")),
        "intercepted again: {shown:?}"
    );
    let asked: Vec<_> = seen
        .lock()
        .unwrap()
        .iter()
        .map(|arguments| arguments["text"].clone())
        .collect();
    assert_eq!(asked, ["typed!", "edit!"]);
}
