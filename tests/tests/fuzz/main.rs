//! A limited run of the fuzzers: mutants of their seeds, identical in every run.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::path::Path;

use toolwit_tests::fuzz;

/// Mutants of each seed.
const MUTANTS: u32 = 20_000;

/// Deterministic pseudo-random numbers (xorshift, Marsaglia 2003).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }
}

/// Changes a few bytes: sets, deletes or doubles them, or inserts tokens that are hard to parse.
fn mutate(data: &mut Vec<u8>, numbers: &mut Numbers) {
    const STUMBLES: [&[u8]; 10] = [
        b"\0",
        b"\xff\xfe",
        b"[[",
        b"-1",
        b"1e999",
        b"\"",
        b"%00",
        b"@",
        b"..",
        b"\xf0\x9f\x92\xa9",
    ];
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(data.len());
        match numbers.below(5) {
            0 if !data.is_empty() => data[at] = u8::try_from(numbers.next() % 256).unwrap(),
            1 if !data.is_empty() => drop(data.remove(at)),
            2 if !data.is_empty() => {
                let end = (at + 1 + numbers.below(16)).min(data.len());
                let piece = data[at..end].to_vec();
                data.splice(at..at, piece);
            }
            3 => data.truncate(at),
            _ => {
                let stumble = STUMBLES[numbers.below(STUMBLES.len())];
                data.splice(at..at, stumble.iter().copied());
            }
        }
    }
}

fn run(target: &str, check: fn(&[u8])) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    let mut files: Vec<_> = std::fs::read_dir(seeds)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{target} has seeds");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for file in files {
        let seed = std::fs::read(&file).unwrap();
        check(&seed);
        let mut data = seed.clone();
        for mutant in 0..MUTANTS {
            // Restart from the seed regularly, so that most of the input stays meaningful.
            if mutant % 8 == 0 {
                data.clone_from(&seed);
            }
            mutate(&mut data, &mut numbers);
            check(&data);
        }
    }
}

// attack: E1, attack: E5
#[test]
fn values_are_refused_or_round_trip() {
    run("values", fuzz::values);
}

// attack: B4
#[test]
fn cbor_is_refused_or_round_trips() {
    run("cbor", fuzz::cbor);
}

// attack: A1
#[test]
fn component_is_refused_or_its_cached_inspection_round_trips() {
    run("component", fuzz::component);
}

// attack: D1, attack: D2, attack: D3
#[test]
fn configuration_files_are_parsed_or_refused() {
    run("settings", fuzz::settings);
}

// attack: C10, attack: C11
#[test]
fn fuzzed_request_reaches_granted_hosts_only() {
    run("gate", fuzz::gate);
}

// attack: L1
#[cfg(unix)]
#[test]
fn granted_directories_follow_no_link_that_a_plugin_can_plant() {
    run("directories", fuzz::directories);
}
