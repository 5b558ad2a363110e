//! Attempts on the process.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::Probe;
use crate::exports::test::probe::process::Guest;

impl Guest for Probe {
    fn environment() -> Vec<(String, String)> {
        std::env::vars().collect()
    }

    fn arguments() -> Vec<String> {
        std::env::args().collect()
    }

    fn time() -> (u64, u64) {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        (wall, wasip2::clocks::monotonic_clock::now())
    }

    fn random() -> String {
        let bytes = wasip2::random::random::get_random_bytes(16);
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn end(code: u8) {
        std::process::exit(i32::from(code));
    }

    fn say(text: String) -> String {
        println!("{text}");
        eprintln!("{text}");
        text
    }
}
