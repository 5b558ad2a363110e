//! What the library logs, on standard error.

use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::printer::Talk;

/// Shows the library's log as far as the user wants it. The crates below it speak only when something is wrong.
pub(super) fn start(talk: Talk) {
    let (own, others) = match talk {
        Talk::Quiet => (LevelFilter::ERROR, LevelFilter::OFF),
        Talk::Normal => (LevelFilter::WARN, LevelFilter::ERROR),
        Talk::Verbose => (LevelFilter::INFO, LevelFilter::WARN),
        Talk::Debug => (LevelFilter::DEBUG, LevelFilter::WARN),
    };
    let lines = tracing_subscriber::fmt::layer()
        .without_time()
        .with_target(false)
        .with_ansi(anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never)
        .with_writer(io::stderr);
    let filter = Targets::new().with_target("toolwit", own).with_default(others);
    // It fails only where a logger was set before, which then is the one to use.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
}
