//! The effect class of a plugin: the class that the sandbox proves under its grants, and the claim of its author.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::sync::Arc;

use async_trait::async_trait;

use toolwit_core::{
    Arguments, CallAccess, Effect, EffectClass, EffectSource, Tool, ToolCaller, ToolContext, ToolError, ToolResult,
};
use toolwit_sandbox::grants::{GrantScope, GrantedVersion, Grants};
use toolwit_sandbox::{CodeCacheLocation, NewGrant, Plugin, Runtime, RuntimeOptions, Scope};

/// A component that imports these interfaces and exports `run`.
fn component(imports: &[&str]) -> Vec<u8> {
    let imports: String = imports
        .iter()
        .map(|import| format!("(import \"{import}\" (instance))\n"))
        .collect();
    let text = format!(
        r#"(component {imports}
            (core module $m (func (export "run") (result i32) i32.const 1))
            (core instance $i (instantiate $m))
            (func (export "run") (result u32) (canon lift (core func $i "run"))))"#
    );
    wat::parse_str(text).unwrap()
}

const ALL: [&str; 5] = [
    "wasi:filesystem/preopens@0.2.0",
    "wasi:http/outgoing-handler@0.2.0",
    "wasi:keyvalue/store@0.2.0-draft2",
    "toolwit:plugin/blackboard@0.1.0",
    "toolwit:plugin/tools@0.1.0",
];

/// Returns the tool `run` of a plugin whose docs claim `claim`, under a grant with these rules.
async fn tool(imports: &[&str], claim: &str, rules: &str) -> Arc<dyn Tool> {
    let grant = format!("version = 1\n[[grant]]\nplugin = \"guest\"\nany-version = true\n{rules}");
    let runtime = Runtime::new(RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        application_grants: vec![NewGrant {
            plugin: "guest".to_owned(),
            version: GrantedVersion::Any,
            scope: GrantScope::Always,
            rules: Grants::parse(grant.as_bytes()).unwrap().grants.remove(0).rules,
        }],
        ..RuntimeOptions::default()
    });
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("guest.wasm");
    fs::write(&path, component(imports)).unwrap();
    let docs = if claim.is_empty() {
        String::new()
    } else {
        format!("/// @effect {claim}\n")
    };
    let wit = format!("package test:guest;\nworld guest {{\n/// Runs.\n{docs}export run: func() -> u32;\n}}\n");
    fs::write(path.with_extension("wit"), wit).unwrap();
    let plugin = Plugin::from_file(&runtime.unwrap(), "guest", path).await.unwrap();
    plugin.tools(&Scope::new()).remove(0)
}

async fn access(imports: &[&str], claim: &str, rules: &str) -> CallAccess {
    let tool = tool(imports, claim, rules).await;
    tool.access(&Arguments::new(), &ToolContext::new()).await
}

fn proved(class: EffectClass) -> Effect {
    Effect::new(class, EffectSource::Sandbox)
}

#[tokio::test]
async fn plugin_without_an_import_that_changes_anything_only_reads() {
    assert_eq!(access(&[], "", "").await.effect, proved(EffectClass::Read));
    assert_eq!(
        access(&ALL, "", "").await.effect,
        proved(EffectClass::Read),
        "imported, but not granted"
    );
    let directory = tempfile::tempdir().unwrap();
    let files = format!("files = [{{ host = {:?}, guest = \"/data\" }}]\n", directory.path());
    let read = access(&ALL, "", &files).await;
    assert_eq!(read.effect, proved(EffectClass::Read), "{read:?}");
    assert_eq!(read.grant.len(), 1, "{read:?}");
    let claimed = access(&[], "write", "").await.effect;
    assert_eq!(
        claimed,
        Effect::new(EffectClass::Write, EffectSource::Author),
        "an author can claim a stronger effect"
    );
}

#[tokio::test]
async fn claim_of_read_does_not_hide_a_writable_directory() {
    let directory = tempfile::tempdir().unwrap();
    let files = format!(
        "files = [{{ host = {:?}, guest = \"/data\", access = \"read-write\" }}]\n",
        directory.path()
    );
    for claim in ["read", "idempotent"] {
        let access = access(&ALL, claim, &files).await;
        assert_eq!(
            (access.effect.class, access.effect.source),
            (EffectClass::Write, EffectSource::Default)
        );
        assert_eq!(
            access.effect.rejected_claim.unwrap().as_str(),
            claim,
            "the claim stays visible"
        );
        assert!(access.writing_rule.unwrap().contains("/data"));
    }
    // Without the import, the grant has no effect.
    assert_eq!(access(&[], "read", &files).await.effect, proved(EffectClass::Read));
}

#[tokio::test]
async fn every_grant_that_can_change_something_makes_a_plugin_write() {
    for rules in [
        "keyvalue = { quota = \"1KiB\" }\n",
        "blackboard = \"read-write\"\n",
        "tools = [\"other#run\"]\n",
    ] {
        let access = access(&ALL, "read", rules).await;
        assert_eq!(access.effect.class, EffectClass::Write, "{rules}");
        assert!(access.writing_rule.is_some(), "{rules}");
    }
    assert_eq!(
        access(&ALL, "", "blackboard = \"read\"\n").await.effect,
        proved(EffectClass::Read)
    );
}

/// The other tools of a conversation, all of one class.
struct Others(EffectClass);

#[async_trait]
impl ToolCaller for Others {
    async fn call_tool(&self, _: &str, _: Arguments, _: &ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::text(""))
    }

    async fn effect_of(&self, id: &str, _: &ToolContext) -> Option<Effect> {
        (id == "other#run").then(|| Effect::new(self.0, EffectSource::Author))
    }
}

#[tokio::test]
async fn plugin_that_calls_tools_has_a_read_effect_only_if_they_do() {
    let tool = tool(&ALL, "", "tools = [\"other#run\"]\n").await;
    for (class, expected) in [
        (EffectClass::Read, EffectClass::Read),
        (EffectClass::Idempotent, EffectClass::Write),
        (EffectClass::Write, EffectClass::Write),
    ] {
        let context = ToolContext::new().with_tools(Arc::new(Others(class)));
        let access = tool.access(&Arguments::new(), &context).await;
        assert_eq!(access.effect.class, expected, "{class}");
    }
}

#[tokio::test]
async fn tag_is_not_part_of_the_description() {
    let tool = tool(&[], "read", "").await;
    assert_eq!(tool.definition().description, "Runs.");
    assert_eq!(tool.definition().effect, Some(EffectClass::Read));
}
