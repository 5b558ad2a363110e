#!/bin/sh
# Zig as the C compiler for WASI. Zig does not know the target's name in Rust.
for argument; do
    shift
    case $argument in
    --target=*) ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec ZIG cc -target wasm32-wasi "$@"
