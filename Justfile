# Recipes for `just`. Each runs one command.

# Lists the recipes.
default:
    @just --list

# Builds the library and the command.
build:
    cargo build

# Runs the scripted demo.
demo:
    cargo run -- demo

# Runs all tests.
test:
    cargo test --workspace

# Prints which acceptance criteria and attacks have tests.
coverage:
    cargo test -p toolwit-tests --test house -- --nocapture every_citation_names_a_line

# Runs the attack tests and updates the table in SECURITY.md.
attacks:
    cargo run -p toolwit-tests --bin attacks -- --write

# Runs the hostile Python guest; needs componentize-py.
hostile-python:
    cargo test -p toolwit-tests --test python -- --ignored

# Runs clippy with all features and without features.
lint:
    cargo clippy --workspace --all-targets --all-features -- -D warnings
    cargo clippy -p toolwit --no-default-features -- -D warnings

# Formats all sources.
fmt:
    cargo fmt --all

# Benchmarks Toolwit against raw wasmtime.
bench:
    cargo bench

# Checks licences, sources and advisories of dependencies; needs cargo-deny.
deny:
    cargo deny check

# Fuzzes a target (values, cbor, component, settings, gate or directories) for a number of seconds; needs cargo-fuzz. Uses the locked
# dependencies. Runs on stable Rust without a sanitizer: the host has no unsafe code, so that fuzzing looks for panics.
fuzz TARGET SECONDS="60":
    cp Cargo.lock fuzz/Cargo.lock
    mkdir -p fuzz/corpus/{{TARGET}}
    cargo fuzz run --dev --sanitizer none {{TARGET}} fuzz/corpus/{{TARGET}} fuzz/seeds/{{TARGET}} -- -max_total_time={{SECONDS}}

# Runs ten cases with a small local model; the first run builds llama.cpp's server, in about 25 minutes on two cores.
local-model:
    .ci/local-model

# Runs exactly what CI runs.
ci:
    .ci/run
