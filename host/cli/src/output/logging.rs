//! The library's log, on standard error.

use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::output::printer::Verbosity;

/// Starts logging at the level of the verbosity. Dependencies log warnings and errors only.
pub(crate) fn start(verbosity: Verbosity) {
    let (own, others) = match verbosity {
        Verbosity::Quiet => (LevelFilter::ERROR, LevelFilter::OFF),
        Verbosity::Normal => (LevelFilter::WARN, LevelFilter::ERROR),
        Verbosity::Verbose => (LevelFilter::INFO, LevelFilter::WARN),
        Verbosity::Debug => (LevelFilter::DEBUG, LevelFilter::WARN),
    };
    let lines = tracing_subscriber::fmt::layer()
        .without_time()
        .with_target(false)
        .with_ansi(anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never)
        .with_writer(io::stderr);
    let filter = Targets::new().with_target("toolwit", own).with_default(others);
    // Fails only if a logger is already set, which is then used.
    let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
}
