# Recipes for those who have `just`; each is one command that can be typed as well.

# Lists the recipes.
default:
    @just --list

# Builds the library and the command.
build:
    cargo build

# Plays the scenario with a scripted model over the real loop and the real plugins.
demo:
    cargo run -- demo

# Runs all tests.
test:
    cargo test --workspace

# Prints which promises and attacks the tests cite, and which they do not yet.
coverage:
    cargo test -p toolwit-tests --test house -- --nocapture every_citation_names_a_line

# Tries every attack, prints what it came to, and keeps the table in SECURITY.md.
attacks:
    cargo run -p toolwit-tests --bin attacks -- --write

# Tries a hostile tool in Python; needs componentize-py.
hostile-python:
    cargo test -p toolwit-tests --test python -- --ignored

# Checks what the compiler and clippy know, with all features and with none.
lint:
    cargo clippy --workspace --all-targets --all-features -- -D warnings
    cargo clippy -p toolwit --no-default-features -- -D warnings

# Formats all sources.
fmt:
    cargo fmt --all

# Compares raw wasmtime and Toolwit on the same component.
bench:
    cargo bench

# Checks licences, sources and advisories of the dependencies; needs cargo-deny.
deny:
    cargo deny check

# Looks for inputs that break the host, for so many seconds; needs cargo-fuzz. Targets: values, component, settings, gate. The
# dependencies are those that ship. Without a sanitizer stable Rust does: the host's own code is safe, and a panic is a find.
fuzz TARGET SECONDS="60":
    cp Cargo.lock fuzz/Cargo.lock
    mkdir -p fuzz/corpus/{{TARGET}}
    cargo fuzz run --dev --sanitizer none {{TARGET}} fuzz/corpus/{{TARGET}} fuzz/seeds/{{TARGET}} -- -max_total_time={{SECONDS}}

# Runs exactly what CI runs.
ci:
    .ci/run
