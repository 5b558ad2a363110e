//! The subcommands. Each has a file or folder with its name; `revoke` is in the folder of `grant`. The modules
//! `compilation`, `ranked_tools` and `shipped` contain code that the commands use.

pub(crate) mod add;
pub(crate) mod approvals;
pub(crate) mod approve;
pub(crate) mod build;
pub(crate) mod cache;
pub(crate) mod call;
pub(crate) mod chat;
pub(crate) mod compilation;
mod completions;
pub(crate) mod demo;
pub(crate) mod deny;
pub(crate) mod dev;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod grant;
pub(crate) mod inspect;
pub(crate) mod lint;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod new;
pub(crate) mod pack;
mod ranked_tools;
pub(crate) mod refresh;
pub(crate) mod remove;
pub(crate) mod replay;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod secret;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod shipped;
pub(crate) mod show;
pub(crate) mod test;
pub(crate) mod trace;
pub(crate) mod trust;
pub(crate) mod vectors;

use clap::Subcommand;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::printer::Printer;

/// A subcommand with its arguments.
///
/// The doc comment of each argument struct is the help text of the command. A doc comment here would replace it.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
    Run(Box<run::Run>),
    Chat(Box<chat::Chat>),
    Resume(Box<resume::Resume>),
    Sessions(sessions::Sessions),
    #[command(name = "approvals")]
    ListApprovals(approvals::ListApprovals),
    Approve(approve::Approve),
    Deny(deny::Deny),
    Trace(trace::DrawTrace),
    Replay(Box<replay::ReplayTrace>),
    List(list::List),
    Search(search::Search),
    Show(show::Show),
    Call(Box<call::Call>),
    Mcp(Box<mcp::Mcp>),
    Serve(Box<serve::Serve>),
    Inspect(inspect::Inspect),
    New(new::New),
    Build(build::Build),
    Test(test::Test),
    Dev(dev::Dev),
    Grant(Box<grant::Grant>),
    Revoke(grant::Revoke),
    Trust(trust::TrustProject),
    Explain(explain::Explain),
    Secret(secret::Secret),
    Add(Box<add::Add>),
    Remove(remove::Remove),
    Refresh(Box<refresh::Refresh>),
    Pack(pack::Pack),
    Lint(lint::Lint),
    Cache(cache::Cache),
    Vectors(vectors::Vectors),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    /// Returns whether the command listens for Ctrl-C and SIGTERM itself, and cancels the token. For other commands,
    /// the caller does both.
    pub(crate) fn handles_interrupts(&self) -> bool {
        matches!(self, Self::Chat(_))
    }

    /// Runs the command. Cancelling the token ends a command that waits for a guest, a model or a compiler.
    /// `definition` returns the definition of the command line.
    pub(crate) async fn run(
        self,
        printer: Printer,
        cancel: &CancellationToken,
        definition: fn() -> clap::Command,
    ) -> Result<Exit, Failure> {
        match self {
            Self::Demo(demo) => demo.run(printer, cancel).await,
            Self::Run(run) => run.run(printer, cancel).await,
            Self::Chat(chat) => chat.run(printer, cancel).await,
            Self::Resume(resume) => resume.run(printer, cancel).await,
            Self::Sessions(sessions) => sessions.run(printer).await,
            Self::ListApprovals(list) => list.run(printer).await,
            Self::Approve(approve) => approve.run(printer, cancel).await,
            Self::Deny(deny) => deny.run(printer).await,
            Self::Trace(trace) => trace.run(printer, cancel).await,
            Self::Replay(replay) => replay.run(printer, cancel).await,
            Self::List(list) => list.run(printer).await,
            Self::Search(search) => search.run(printer).await,
            Self::Show(show) => show.run(printer).await,
            Self::Call(call) => call.run(printer, cancel).await,
            Self::Mcp(mcp) => mcp.run(printer, cancel).await,
            Self::Serve(serve) => serve.run(printer, cancel).await,
            Self::Inspect(inspect) => inspect.run(printer).await,
            Self::New(new) => new.run(printer),
            Self::Dev(dev) => dev.run(printer, cancel).await,
            Self::Test(test) => test.run(printer, cancel).await,
            Self::Build(build) => build.run(printer, cancel).await,
            Self::Grant(grant) => grant.run(printer).await,
            Self::Revoke(revoke) => revoke.run(printer),
            Self::Trust(trust) => trust.run(printer),
            Self::Explain(explain) => explain.run(printer).await,
            Self::Secret(secret) => secret.run(printer, cancel).await,
            Self::Add(add) => add.run(printer, cancel).await,
            Self::Remove(remove) => remove.run(printer).await,
            Self::Refresh(refresh) => refresh.run(printer).await,
            Self::Pack(pack) => pack.run(printer).await,
            Self::Lint(lint) => lint.run(printer).await,
            Self::Cache(cache) => cache.run(printer).await,
            Self::Vectors(vectors) => vectors.run(printer),
            Self::Doctor(doctor) => doctor.run(printer).await,
            Self::Completions(completions) => completions.run(printer, definition()),
            Self::Man(man) => man.run(printer, definition()),
        }
    }
}
